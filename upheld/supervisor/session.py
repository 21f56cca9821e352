"""Crash, pause and resume: signals to every process of an instance, from outside.

A process group is not enough: runtimes move their workers into groups of their own. A worker that
is missed goes on writing after the "crash", and the scenario would judge something that never
happened. So the processes of an instance are the descendants of its guard, which none can leave. If
the guard has ended, they are those of its session, those with its tag in the environment, and those
that lost a guard. Their descendants are among them. They are listed again until nothing new
appears.

Containers are the engine's children. They are struck through the engine, once no process is left
that could start another one.
"""

import contextlib
import os
import signal
import time
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Final

from upheld.supervisor.containers import Containers
from upheld.supervisor.guarded import Guarded
from upheld.supervisor.stat import DEAD, Stat, stat, stats, with_descendants
from upheld.verdicts import HarnessError

INSTANCE_TAG = "UPHELD_INSTANCE"
# States in /proc/PID/stat.
_STOPPED: Final = "Tt"
# In the kernel, like a thread that waits for its stopped vfork child. It stops before it runs
# again.
_ASLEEP: Final = "D"
_LOOK_AGAIN_S: Final = 0.0005
_DEADLINE_S: Final = 10.0


@dataclass(frozen=True)
class Session:
    """The processes of one instance, by their guard, session and tag.

    An instance that may have containers has these too.
    """

    process: Guarded  # the session's leader
    tag: str
    # When the leader started. No older process can carry the tag, so none is read for it.
    born_ticks: int = 0
    containers: Containers | None = None

    @classmethod
    def of(cls, process: Guarded, tag: str, *, has_containers: bool = False) -> "Session":
        """Return the session of a process that has just been spawned as its leader."""
        row = stat(f"/proc/{process.pid}/stat")
        containers = Containers(tag) if has_containers else None
        return cls(process, tag, row.born_ticks if row else 0, containers)

    @property
    def leader(self) -> int:
        """The session's id, which is the process id of its first process."""
        return self.process.pid

    def pids(self, named: Iterable[int] = ()) -> list[int]:
        """Return the ids of all living processes of the instance, without zombies.

        Args:
            named: Ids of further processes that belong to it if they have its tag, such as those
                that a cluster manager has started for it.
        """
        own = {pid for pid, state in self._states().items() if state not in DEAD}
        own.update(self.containers.pids() if self.containers else ())
        return sorted(own | {pid for pid in named if self._is_tagged(pid)})

    def know_containers(self) -> None:
        """Take the CPU of its containers from here on for that of this process's tree."""
        if self.containers:
            self.containers.pids()

    def pause(self) -> list[int]:
        """Stop every process, and return when every thread of each is stopped."""
        taken = self._signal(signal.SIGSTOP, settled=_STOPPED + _ASLEEP + DEAD)
        if self.containers is None:
            return taken
        self.containers.pause()
        return sorted({*taken, *self.containers.pids()})

    def resume(self) -> list[int]:
        """Let every stopped process go on."""
        pids = self.pids()
        if self.containers:
            self.containers.resume()
        _send(-self.leader, signal.SIGCONT)
        for pid in pids:
            _send(pid, signal.SIGCONT)
        return pids

    def step(self, seconds: float) -> None:
        """Let the session's own group go on for some seconds, and stop it again.

        This is quicker than to list the processes. Those outside the group stay stopped.
        Containers go on a little longer: the engine takes its time.
        """
        _send(-self.leader, signal.SIGCONT)
        if self.containers:
            self.containers.resume()
        time.sleep(seconds)
        _send(-self.leader, signal.SIGSTOP)
        if self.containers:
            self.containers.pause()

    def kill(self) -> list[int]:
        """Kill every process, running or stopped, and return when none is left.

        The guard reaps them.
        """
        # All are stopped first, at once. A process that died at the first signal would be gone
        # before it is listed as evidence. Containers are killed when nobody can start another one.
        settled = _STOPPED + _ASLEEP + DEAD if self.containers else None
        taken = self._signal(signal.SIGSTOP, settled)
        contained = self.containers.kill() if self.containers else ()
        return sorted({*taken, *contained, *self._signal(signal.SIGKILL, settled=DEAD)})

    def _signal(self, number: signal.Signals, settled: str | None) -> list[int]:
        """Signal all processes, until no new one is found and all have settled."""
        _send(-self.leader, number)  # most of them in one call, then those that left the group
        taken: set[int] = set()
        until = time.monotonic() + _DEADLINE_S
        while True:
            states = self._states(taken)
            living = {pid for pid, state in states.items() if state not in DEAD}
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

    def _states(self, known: Container[int] = ()) -> dict[int, str]:
        """Return the processes of the instance with their states, by one walk through /proc.

        Those that are `known` stay members. A process that is ending has no environment any more,
        and may have no parent of the instance, long before it has ended.
        """
        table = stats()
        family, guard = self.process.family, self.process.guard
        members = family.members(guard, table)
        if not family.has(guard):
            members |= self._without_guard(table)
        members |= {pid for pid in table if pid in known}
        return {pid: table[pid].state for pid in with_descendants(table, members)}

    def _without_guard(self, table: dict[int, Stat]) -> set[int]:
        """Return the processes that are known by their session, by their tag, or as strays."""
        members = {pid for pid, row in table.items() if row.session == self.leader}
        members |= self.process.family.strays(table)
        strangers = (
            pid
            for pid, row in table.items()
            if pid not in members and row.born_ticks >= self.born_ticks
        )
        return members | {pid for pid in strangers if self._is_tagged(pid)}

    def _is_tagged(self, pid: int) -> bool:
        """Return whether a process has the tag in its environment."""
        return f"{INSTANCE_TAG}={self.tag}".encode() in _environment(pid)


def _send(pid: int, number: signal.Signals) -> None:
    """Signal a process, or a group if negative; a process that has gone is no error."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _environment(pid: int) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def _settled(pids: set[int], states: dict[int, str], settled: str) -> bool:
    """Return whether every thread has taken the signal.

    A process shows the state of its first thread alone.
    """
    if any(states[pid] not in settled for pid in pids):
        return False
    for pid in pids:
        try:
            threads = os.listdir(f"/proc/{pid}/task")
        except OSError:
            continue
        for thread in threads:
            row = stat(f"/proc/{pid}/task/{thread}/stat")
            if row and row.state not in settled:
                return False
    return True
