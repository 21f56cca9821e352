"""The processes of an instance are followed to their ends."""

import os
import signal
from dataclasses import replace
from typing import Any

import pytest
from children import child, scope, started
from miniatures import until

from upheld.supervisor import guarded, session
from upheld.supervisor.session import INSTANCE_TAG, Session
from upheld.supervisor.stat import stat, stats
from upheld.verdicts import HarnessError

# Other tests run beside these, and whatever has this tag is struck.
TAG = f"of-this-test-{os.getpid()}"


def test_a_process_that_ends_without_an_environment_stays_a_member(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A kill waits for a worker whose tag cannot be read any more, since it is ending."""
    odd = child(["sleep", "5"])
    odd.environment[INSTANCE_TAG] = TAG
    worker = scope().spawn(odd)
    environments = iter([True])
    read = session._environment
    until(lambda: f"{INSTANCE_TAG}={TAG}".encode() in read(worker.pid))  # its program has begun
    monkeypatch.setattr(
        session,
        "_environment",
        lambda pid: read(pid) if pid != worker.pid or next(environments, False) else [],
    )
    sent: list[int] = []
    monkeypatch.setattr(session, "_send", lambda pid, _: sent.append(pid))
    monkeypatch.setattr(session, "_DEADLINE_S", 0.05)
    monkeypatch.setattr(worker.family, "members", lambda *_: set())  # it has lost its guard
    monkeypatch.setattr(worker.family, "has", lambda _: False)
    monkeypatch.setattr(Session, "leader", 1 << 22)

    with pytest.raises(HarnessError, match=f"{worker.pid}.* did not obey SIGKILL"):
        Session(worker, TAG)._signal(signal.SIGKILL, settled="ZX")

    assert worker.pid in sent
    worker.kill()
    worker.wait()
    worker.close()


@pytest.mark.parametrize("is_exiting", [False, True])
def test_a_guard_that_ends_during_a_walk(is_exiting: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it was read while it lived, its orphans are found below the reaper."""
    with started("sh", "-c", "echo; exec env -i sleep 60") as process:
        assert process.stdout
        process.stdout.readline()  # not even a tag is left
        until(lambda: session._environment(process.pid) == [b""])
        alone = Session.of(process, "nobody's")
        monkeypatch.setattr(Session, "leader", 1 << 22)
        guard = stats()[process.guard]
        os.kill(process.guard, signal.SIGKILL)
        until(lambda: stats()[process.pid].parent == process.family.reaper)
        torn = stats() | {process.guard: guard}
        monkeypatch.setattr(session, "stats", lambda: torn)
        if is_exiting:
            last = guard._replace(is_exiting=True)
            monkeypatch.setattr(guarded, "stat", lambda _: last)

        assert process.pid in alone.pids()


class Contained:
    """The containers of an instance: they note what strikes them.

    Beside it stands the state of the leader at that moment.
    """

    def __init__(self, leader: int) -> None:
        self.leader = leader
        self.struck: list[tuple[str, str]] = []

    def pids(self) -> list[int]:
        """Return one process that is the engine's."""
        return [1 << 22]

    def pause(self) -> None:
        """Note it."""
        self._note("pause")

    def resume(self) -> None:
        """Note it."""
        self._note("resume")

    def kill(self) -> list[int]:
        """Note it."""
        self._note("kill")
        return self.pids()

    def _note(self, what: str) -> None:
        row = stat(f"/proc/{self.leader}/stat")
        self.struck.append((what, row.state if row else "gone"))


def test_a_container_is_struck_when_no_process_can_start_another_one() -> None:
    """The leader is stopped by then, and is killed last; both are evidence."""
    with started("sleep", "60") as leader:
        containers: Any = Contained(leader.pid)
        session = replace(Session.of(leader, TAG), containers=containers)

        assert session.pids() == [leader.pid, 1 << 22]
        assert session.pause() == [leader.pid, 1 << 22]
        session.step(0.01)
        session.resume()
        assert session.kill() == [leader.pid, 1 << 22]

    assert [what for what, _ in containers.struck] == ["pause", "resume", "pause", "resume", "kill"]
    assert containers.struck[0] == ("pause", "T")
    assert containers.struck[-1] == ("kill", "T")
