"""Crash, pause and resume: signals that take every process of an instance, from outside and at
once.

A process group is not enough: runtimes move their workers into groups of their own, and a worker
that is missed goes on writing after the "crash", so that the scenario would judge something that
never happened. An instance is therefore every process that has its session, that carries its tag in
the environment, or that descends from one of these; and it is listed again until nothing new
appears.
"""

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from upheld.supervisor.host import Cores
from upheld.verdicts import HarnessError

INSTANCE_TAG = "UPHELD_INSTANCE"
_PROC = Path("/proc")
_STOPPED, _DEAD = "Tt", "ZXx"  # states in /proc/PID/stat
# In the kernel, as a thread is that waits for its stopped vfork child: it stops before it can run
# again.
_ASLEEP = "D"
_LOOK_AGAIN_S = 0.0005
_DEADLINE_S = 10.0


@dataclass(frozen=True)
class Session:
    """The processes of one instance: `leader` is the id of their session, `tag` theirs alone."""

    leader: int
    tag: str
    born_ticks: int = (
        0  # when the leader started: nobody older can carry the tag, so nobody older is asked
    )

    @classmethod
    def of(cls, leader: int, tag: str) -> "Session":
        """The session of a child that has just been spawned as its leader."""
        stat = _stat(f"/proc/{leader}/stat")
        return cls(leader, tag, int(stat[19]) if stat else 0)

    def pids(self) -> list[int]:
        """Every living process of the instance, the dead that nobody has waited for left out."""
        return sorted(pid for pid, state in self._states().items() if state not in _DEAD)

    def pause(self) -> list[int]:
        """Stop every process, and return only when every thread of each is stopped."""
        return self._signal(signal.SIGSTOP, settled=_STOPPED + _ASLEEP + _DEAD)

    def resume(self) -> list[int]:
        """Let every stopped process go on."""
        pids = self.pids()
        _send(-self.leader, signal.SIGCONT)
        for pid in pids:
            _send(pid, signal.SIGCONT)
        return pids

    def step(self, seconds: float) -> None:
        """Let a stopped session's own group go on for a moment, quicker than it could be listed;
        others stay stopped.
        """
        _send(-self.leader, signal.SIGCONT)
        time.sleep(seconds)
        _send(-self.leader, signal.SIGSTOP)

    def kill(self) -> list[int]:
        """Kill every process, running or stopped, and return when none is left; the parent
        reaps.
        """
        # Stopped first, at once: what dies at the first signal is gone before it can be listed as
        # evidence.
        taken = self._signal(signal.SIGSTOP, settled=None)
        Cores.bury(pid for pid in taken if pid != self.leader)
        return sorted({*taken, *self._signal(signal.SIGKILL, settled=_DEAD)})

    def _signal(self, number: signal.Signals, settled: str | None) -> list[int]:
        """Signal all that there are, then look again until nobody new is found and all have
        settled.
        """
        _send(-self.leader, number)  # most of them in one call; then the ones that left the group
        taken: set[int] = set()
        until = time.monotonic() + _DEADLINE_S
        while True:
            states = self._states()
            living = {pid for pid, state in states.items() if state not in _DEAD}
            fresh = living - taken
            for pid in fresh:
                _send(pid, number)
            taken |= fresh
            if not fresh and (settled is None or _settled(living, states, settled)):
                return sorted(taken)
            if time.monotonic() > until:
                raise HarnessError(
                    f"{sorted(living)} did not obey {number.name} within {_DEADLINE_S:.0f} s."
                )
            time.sleep(_LOOK_AGAIN_S)

    def _states(self) -> dict[int, str]:
        """The processes of the instance with their states, by one walk through /proc."""
        table: dict[int, tuple[str, int, int]] = {}  # pid -> state, parent, start in clock ticks
        members: set[int] = set()
        for name in os.listdir(_PROC):  # noqa: PTH208 - a fault window is some 20 ms: no Path per process
            if name.isdigit() and (stat := _stat(f"/proc/{name}/stat")):
                pid = int(name)
                table[pid] = (stat[0], int(stat[1]), int(stat[19]))
                if int(stat[3]) == self.leader:
                    members.add(pid)
        tag = f"{INSTANCE_TAG}={self.tag}".encode()
        strangers = (
            pid for pid, row in table.items() if pid not in members and row[2] >= self.born_ticks
        )
        members |= {pid for pid in strangers if tag in _environment(pid)}
        while children := {pid for pid, row in table.items() if row[1] in members} - members:
            members |= children
        return {pid: table[pid][0] for pid in members}


def _send(pid: int, number: signal.Signals) -> None:
    """Signal a process, or a group where negative; one that has gone meanwhile is no error."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _stat(path: str) -> list[str]:
    """The fields of a stat file from the third on (state, parent, group, session, …); none if it
    has gone.
    """
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read().rpartition(b")")[2].decode().split()
    except OSError:
        return []


def _environment(pid: int) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
            return file.read().split(b"\0")
    except OSError:
        return []


def _settled(pids: set[int], states: dict[int, str], settled: str) -> bool:
    """Whether every thread has taken the signal: a process shows the state of its first thread
    alone.
    """
    if any(states[pid] not in settled for pid in pids):
        return False
    for pid in pids:
        try:
            threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
        except OSError:
            continue
        for thread in threads:
            stat = _stat(f"/proc/{pid}/task/{thread}/stat")
            if stat and stat[0] not in settled:
                return False
    return True
