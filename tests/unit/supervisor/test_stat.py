"""The kernel's table of processes is read as psutil reads it."""

import os
import shutil
import subprocess
from pathlib import Path

import psutil
import pytest
from miniatures import until

from upheld.supervisor import stat as module
from upheld.supervisor.stat import Stat, stat, stats, with_descendants


@pytest.mark.parametrize("name", ["a) R (b", "( )", "))"])
def test_a_name_with_brackets(name: str, tmp_path: Path) -> None:
    """A process may have brackets and spaces in its name, as many as it likes."""
    sleep = shutil.which("sleep")
    assert sleep
    odd = tmp_path / name
    odd.symlink_to(sleep)
    with subprocess.Popen([odd, "60"], start_new_session=True) as child:
        found = stat(f"/proc/{child.pid}/stat")
        child.kill()

    assert found
    assert (found.parent, found.session) == (os.getpid(), child.pid)


def test_is_what_psutil_says() -> None:
    """Parent, session and CPU-seconds of this process are those that psutil reads."""
    found = stats()[os.getpid()]
    said = psutil.Process()

    assert (found.parent, found.session) == (said.ppid(), os.getsid(0))
    later_s = sum(said.cpu_times()[:4]) - found.with_children_s
    assert 0 <= round(later_s, 6) < 1  # sums of ticks, added in another order


def test_a_process_that_has_gone() -> None:
    """It is passed over."""
    with subprocess.Popen(["true"]) as child:
        pass

    assert stat(f"/proc/{child.pid}/stat") is None


def test_a_parent_that_ends_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its child, which was read before, is read again and has another parent."""
    ended = 1 << 22  # no process has this number, as the child's first row has
    read = [Stat("S", ended, 0, 0, 0.0), Stat("S", 1, 0, 0, 0.0)]
    monkeypatch.setattr(os, "listdir", lambda _: ["7"])
    monkeypatch.setattr(module, "stat", lambda _: read.pop(0))

    assert stats() == {7: Stat("S", 1, 0, 0, 0.0)}


def test_a_process_that_is_ending() -> None:
    """It is told from one that goes on, also before it is a zombie."""
    with subprocess.Popen(["true"]) as child:
        until(lambda: (row := stat(f"/proc/{child.pid}/stat")) is not None and row.is_exiting)
    own = stat("/proc/self/stat")

    assert own
    assert not own.is_exiting


def test_descendants() -> None:
    """They are found through every generation, also those of an ended process."""
    parents = {2: 1, 3: 2, 4: 3, 5: 1, 6: 99}
    table = {pid: Stat("S", parent, 0, 0, 0.0) for pid, parent in parents.items()}

    assert with_descendants(table, {2}) == {2, 3, 4}
    assert with_descendants(table, {5, 99}) == {5, 6, 99}
