"""The use of the machine by a run is told apart from that by others."""

import os
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import psutil
import pytest
from children import started

from upheld.supervisor import host
from upheld.supervisor.session import Session
from upheld.supervisor.stat import with_descendants

WORKER = """
import time
while time.process_time() < 0.3:
    pass
print("worked", flush=True)
time.sleep(60)
"""
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {WORKER!r}])"


def test_what_was_killed_with_its_parent_stays_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU-seconds of a killed instance's workers stay the run's own."""
    with started(sys.executable, "-c", PARENT) as parent:
        session = Session.of(parent, "nobody else's")
        assert parent.stdout
        parent.stdout.readline()
        # What other tests have left behind may end meanwhile.
        its = psutil.Process(parent.family.reaper)
        asked = {os.getpid(), its.pid, *(child.pid for child in its.children(recursive=True))}
        monkeypatch.setattr(
            host, "with_descendants", lambda table, pids: with_descendants(table, pids) & asked
        )
        *_, ours_s = host.cpu_s()

        session.kill()
        parent.wait()

        assert round(host.cpu_s()[2] - ours_s, 3) >= 0  # sums of ticks, added in another order


def test_a_moment_says_nothing() -> None:
    """Processes are charged by ticks, so a share of a few of them is chance."""
    assert host.Cores().others(host.cpu_s()) == 0


@pytest.mark.parametrize(("shares", "is_left"), [([0.9, 0.1], True), ([0.9], False)])
def test_others_are_waited_for(
    monkeypatch: pytest.MonkeyPatch, shares: list[float], is_left: bool
) -> None:
    """The first look at which they take little is enough, if it comes in time."""
    monkeypatch.setattr(host, "CORES_LOOK_S", 0.01)
    monkeypatch.setattr(
        host.Cores, "others", lambda *_: shares.pop(0) if len(shares) > 1 else shares[0]
    )

    assert host.is_left_by_others(0.25, 0.1) == is_left


class _Process:
    """A process of the tree, as far as its memory is looked at."""

    def __init__(self, rss_mb: int, pss_mb: int) -> None:
        self.rss_mb = rss_mb
        self.pss_mb = pss_mb
        self.walks = 0

    def memory_info(self) -> SimpleNamespace:
        """Return what is resident."""
        return SimpleNamespace(rss=self.rss_mb << 20)

    def memory_full_info(self) -> SimpleNamespace:
        """Return its share as well, for which page tables are walked."""
        self.walks += 1
        return SimpleNamespace(rss=self.rss_mb << 20, pss=self.pss_mb << 20)


class _Ended(_Process):
    """One that has ended meanwhile."""

    def memory_info(self) -> SimpleNamespace:
        """Find nothing."""
        raise psutil.NoSuchProcess(1)

    memory_full_info = memory_info


def test_page_tables_are_walked_when_more_is_resident_than_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So that the peak is found, and a tree that keeps its size costs nothing."""
    process = _Process(10, 7)
    memory = host.Memory()
    monkeypatch.setattr(host, "_tree", lambda: iter([process, _Ended(0, 0)]))
    seen = []
    for rss_mb, pss_mb in ((10, 7), (10, 7), (9, 6), (12, 9), (11, 8)):
        process.rss_mb = rss_mb
        process.pss_mb = pss_mb
        memory.look()
        seen.append((memory.peak_mb, process.walks))

    assert seen == [(7, 1), (7, 1), (7, 1), (9, 2), (9, 2)]


def test_memory_that_may_not_be_read_is_counted_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the shares of a process are secret, all that is resident counts."""

    class Secret(_Process):
        def memory_full_info(self) -> SimpleNamespace:
            raise psutil.AccessDenied(1)

    memory = host.Memory()
    monkeypatch.setattr(host, "_tree", lambda: iter([Secret(10, 0)]))
    monkeypatch.setattr(psutil, "Process", lambda *_: Secret(10, 0))

    memory.look()

    assert memory.peak_mb == 10
    assert host.own_bytes([1]) == 10 << 20


def test_a_short_run_is_measured_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is looked at first and last; a look that fails ends no other."""
    looks = iter([psutil.NoSuchProcess(1), None])

    def tree() -> Iterator[_Process]:
        if (failure := next(looks)) is not None:
            raise failure
        return iter([_Process(10, 7)])

    monkeypatch.setattr(host, "_tree", tree)
    memory = host.Memory()
    memory.start()

    assert memory.stop() == 7


def test_a_run_whose_memory_was_never_looked_at_says_zero() -> None:
    """Zero is no amount: the run takes it as not measured."""
    assert host.Memory().stop() == 0
