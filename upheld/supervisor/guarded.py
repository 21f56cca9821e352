"""A process of a design under its guard, as the harness sees it.

It offers what `subprocess.Popen` does for an instance. The process is no child of the harness: its
guard waits for it, and tells its status.
"""

import contextlib
import io
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from upheld.errors import MachineProblem
from upheld.supervisor.guard import STARTED, STATUS, Request
from upheld.supervisor.stat import DEAD, Stat, stat

BOOT_S: Final = 30.0  # at most, for the reaper to fork a guard, and the guard to start the process
LATE: Final = f"does not answer within {BOOT_S:.0f} s; the machine is overloaded"
GONE: Final = "was killed, or the machine is out of memory or of processes"
_TOLD_S: Final = 5.0  # at most, from the end of a process to its status


@dataclass(frozen=True)
class Child:
    """A process to be started in a session of its own, with a pipe to write to.

    Without a descriptor for it, its standard output is a pipe too. It inherits further descriptors
    at the numbers that they have here.
    """

    command: Sequence[str]
    folder: Path
    environment: dict[str, str]
    stderr: int
    stdout: int | None = None
    inherited: tuple[int, ...] = ()


class Family:
    """The reaper and its guards, by which a design's processes are known."""

    def __init__(self, reaper: int, ask: Callable[[socket.socket], None]) -> None:
        self.reaper = reaper
        self.guards: set[int] = set()
        self._ask = ask
        # Held until a guard is known: until then it looks like a stray, and would be killed as one.
        self._births = threading.Lock()

    def spawn(self, child: Child) -> "Guarded":
        """Start a process under a guard.

        Raises:
            OSError: The command cannot be run.
            MachineProblem: The reaper or the guard does not answer.
        """
        ours, theirs = socket.socketpair()
        with self._births:
            with theirs:
                self._ask(theirs)
            return Guarded(self, ours, child)

    def members(self, guard: int, table: Mapping[int, Stat]) -> set[int]:
        """Return the processes right below a guard.

        Args:
            guard: The guard's process id, which is another process's if its parent is another one.
            table: All processes of the machine.
        """
        row = table.get(guard)
        if row is None or row.parent != self.reaper:
            return set()
        return {pid for pid, row in table.items() if row.parent == guard}

    def has(self, guard: int) -> bool:
        """Return whether a guard gets each orphan of its design.

        To be asked after a walk through all processes. A guard that ends while they are read has
        some of its orphans in them, and the reaper has the others.
        """
        row = stat(f"/proc/{guard}/stat")
        if row is None or row.parent != self.reaper:
            return False
        return row.state not in DEAD and not row.is_exiting

    def strays(self, table: Mapping[int, Stat]) -> set[int]:
        """Return the processes of designs that have ended their guards.

        If a process is being started, this waits until its guard is known.

        Args:
            table: All processes of the machine, as they were before this call.
        """
        with self._births:
            guards = set(self.guards)
        return {
            pid for pid, row in table.items() if row.parent == self.reaper and pid not in guards
        }


class Guarded:
    """A process under a guard.

    The guard is lost if the design killed it: the process's status is unknown then, and its
    descendants are the reaper's.
    """

    def __init__(self, family: Family, channel: socket.socket, child: Child) -> None:
        """Send a request to a guard, and wait until the process runs.

        Raises:
            OSError: The command cannot be run.
            MachineProblem: The guard does not answer.
        """
        self.returncode: int | None = None
        self.is_guard_lost = False
        self.family = family
        self._channel = channel
        self._lock = threading.Lock()
        for_stdin, own_stdin = os.pipe()
        own_stdout, for_stdout = os.pipe()
        self.stdin: IO[bytes] | None = io.BufferedWriter(io.FileIO(own_stdin, "w"))
        self.stdout: IO[bytes] | None = io.BufferedReader(io.FileIO(own_stdout, "r"))
        is_late = False
        try:
            channel.settimeout(BOOT_S)
            request = Request(
                list(child.command), str(child.folder), child.environment, list(child.inherited)
            )
            stdout = for_stdout if child.stdout is None else child.stdout
            request.send(channel, [for_stdin, stdout, child.stderr, *child.inherited])
            answer = _answer(channel)
        except OSError as error:
            answer = b""
            is_late = isinstance(error, TimeoutError)
        finally:
            os.close(for_stdin)
            os.close(for_stdout)
        started = STARTED.unpack(answer) if answer else (0, 0, 0)
        self.pid: int = started[0]
        self.guard: int = started[1]
        number: int = started[2]
        if not self.pid:
            self._discard()
            if number:
                raise OSError(number, os.strerror(number))
            raise MachineProblem(f"The process that starts designs {LATE if is_late else GONE}.")
        family.guards.add(self.guard)
        self._pidfd = _descriptor_of(self.pid)

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code when the process has ended.

        Raises:
            subprocess.TimeoutExpired: It runs after that many seconds.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while self.returncode is None:
            left_s = None if until is None else max(0.0, until - time.monotonic())
            if not self._is_ended(left_s) and left_s is not None:
                raise subprocess.TimeoutExpired("the design", timeout or 0.0)
        return self.returncode

    def kill(self) -> None:
        """SIGKILL the process."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Let go of the guard, which ends with the last descendant."""
        with self._lock:
            self._channel.close()
            if self._pidfd is not None:
                os.close(self._pidfd)
                self._pidfd = None

    # --- how it ended

    def _is_ended(self, within_s: float | None) -> bool:
        """Wait for the end of the process or of its guard, and note the exit code."""
        looked = select.poll()
        if not self.is_guard_lost:
            looked.register(self._channel, select.POLLIN)
        if self._pidfd is not None:
            looked.register(self._pidfd, select.POLLIN)
        ended = dict(looked.poll(None if within_s is None else within_s * 1000))
        with self._lock:
            if self.returncode is None and ended:
                self._note(is_over=self._pidfd in ended or self._pidfd is None)
        return self.returncode is not None

    def _note(self, *, is_over: bool) -> None:
        """Read the status, or note that the guard is lost."""
        if is_over and not self.is_guard_lost:
            _send(self.guard, signal.SIGCONT)  # the design may have stopped it
        self._channel.settimeout(_TOLD_S)
        try:
            status = b"" if self.is_guard_lost else self._channel.recv(STATUS.size)
        except OSError:
            status = b""
        if status:
            self.returncode = os.waitstatus_to_exitcode(STATUS.unpack(status)[0])
            return
        self.is_guard_lost = True
        if is_over:
            self.returncode = -signal.SIGKILL

    def _discard(self) -> None:
        for stream in (self.stdin, self.stdout, self._channel):
            assert stream
            stream.close()


def _answer(channel: socket.socket) -> bytes:
    """Return what a guard answers to a request; nothing if the guard ends first."""
    return channel.recv(STARTED.size, socket.MSG_WAITALL)


def _descriptor_of(pid: int) -> int | None:
    """Return a pidfd of a process; None if it has ended already."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


Spawn = Callable[[Child], Guarded]
