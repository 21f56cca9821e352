"""The reaper: nothing survives the end of a run but its output.

All processes, containers and other folders of the run are removed. A run may end by a SIGKILL of
the harness itself, so another process has to clean up. The reaper is one small process in a session
of its own, started before anything that it has to clean. It holds the read end of a pipe whose
write end only the harness has. When the harness dies, the pipe ends and the reaper begins.

Processes of designs are started by the reaper, each below a guard, and stay its descendants. Other
processes belong to a run if they carry the run's tag in their environment. Children inherit it
through setsid, setpgid and double forks. Parent-death signals and process groups do not survive
these. Sessions can be recorded as well, for programs that write over their environment. Containers
are the engine's children, and carry a label.

If the reaper dies too, processes without the tag are lost sight of. The others are not: the
lock that both held on the run's scratch folder becomes free, and the next run sweeps.
"""

import contextlib
import ctypes
import fcntl
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self
from uuid import uuid4

from upheld import commands
from upheld.errors import MachineProblem
from upheld.supervisor import guard
from upheld.supervisor.guarded import Family
from upheld.supervisor.removal import remove
from upheld.supervisor.stat import DEAD, stats, with_descendants

RUN_VARIABLE: Final = "UPHELD_RUN"
RUN_LABEL: Final = "upheld.run"  # on every container of a run
REAP_DEADLINE_S: Final = 20.0
_SCRATCH_PREFIX: Final = "upheld-"
_ALIVE: Final = ".alive"  # locked by harness and reaper together, so free only without both
_CONTAINERS: Final = ".containers"  # its presence says that containers have to be looked for
_BIRTH_S: Final = 60.0
DETACH: Final = 2  # of umount2
_LOOK_S: Final = 0.05
_MADE_S: Final = 0.3  # an engine makes a container sooner than that
_RUN_ID: Final = re.compile(rf"^{_SCRATCH_PREFIX}([0-9a-f]{{12}})$")


class RunScope:
    """One run's id and scratch folder; all that the run starts ends with it."""

    run_id: str
    scratch: Path
    environment: dict[str, str]  # merge it into the environment of every child that is started

    def __init__(self) -> None:
        sweep()
        self.run_id = uuid4().hex[:12]
        self.scratch = Path(tempfile.gettempdir()) / f"{_SCRATCH_PREFIX}{self.run_id}"
        try:
            self.scratch.mkdir(mode=0o700)
            (self.scratch / "tmp").mkdir()
            self._alive: IO[str] | None = _locked(self.scratch)
        except OSError as failure:
            raise MachineProblem(
                f"The scratch folder {self.scratch} cannot be made ({failure.strerror}); "
                "make room there or set TMPDIR to another folder."
            ) from None
        self.environment = {RUN_VARIABLE: self.run_id, "TMPDIR": str(self.scratch / "tmp")}
        inherited = {name: value for name, value in os.environ.items() if name != RUN_VARIABLE}
        self._guards, theirs = socket.socketpair()
        self._reaper = subprocess.Popen(
            commands.own_module(
                "upheld.supervisor.reaper", self.run_id, str(self.scratch), str(theirs.fileno())
            ),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=[self._alive.fileno(), theirs.fileno()],
            cwd="/",
            text=True,
            bufsize=1,
            env=inherited,
        )
        theirs.close()
        self.spawn = Family(self._reaper.pid, self._ask_for_a_guard).spawn

    def session(self, session_id: int) -> None:
        """Record a session: all its processes end with the run, with or without a tag."""
        self._tell(f"session {session_id}")

    def containers(self) -> None:
        """Note that there will be containers with the label `upheld.run=<run_id>`.

        Call this before the first container is started.
        """
        (self.scratch / _CONTAINERS).touch()

    def container(self, container_id: str) -> None:
        """Record one container by its id; its label is enough if there was no time to."""
        self.containers()
        self._tell(f"container {container_id}")

    def close(self) -> None:
        """End all that the run started, and wait until the reaper is done.

        A second call does nothing.
        """
        if self._alive is None:
            return
        self._guards.close()
        with contextlib.suppress(BrokenPipeError):
            assert self._reaper.stdin is not None
            self._reaper.stdin.close()
        try:
            self._reaper.wait(REAP_DEADLINE_S + 10)
        except subprocess.TimeoutExpired:
            self._reaper.kill()
            self._reaper.wait()
        if self.scratch.exists():  # the reaper was killed, or had no time: its work is done here
            reap(self.run_id, self.scratch, [], [])
        self._alive.close()
        self._alive = None

    def _ask_for_a_guard(self, channel: socket.socket) -> None:
        """Have the reaper fork a guard that is asked through this socket."""
        try:
            socket.send_fds(self._guards, [b"g"], [channel.fileno()])
        except OSError:
            raise MachineProblem(
                "The reaper of this run was killed, so no further process of a design can be "
                "started safely."
            ) from None

    def _tell(self, line: str) -> None:
        assert self._reaper.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # a dead reaper: close() does its work
            self._reaper.stdin.write(line + "\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def sweep() -> list[str]:
    """Finish what dead reapers left in the temporary folder; return their runs' ids."""
    swept = []
    for folder in Path(tempfile.gettempdir()).glob(f"{_SCRATCH_PREFIX}*"):
        named = _RUN_ID.match(folder.name)
        with contextlib.suppress(OSError):
            if named is None or folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            if not (folder / _ALIVE).exists():  # the run is just beginning, or died then
                if time.time() - folder.stat().st_mtime > _BIRTH_S:
                    remove(folder)
                continue
            with (folder / _ALIVE).open("r+") as alive:
                # This raises an OSError while harness or reaper live.
                fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
                reap(named[1], folder, [], [])
                swept.append(named[1])
    return swept


def reap(
    run_id: str,
    scratch: Path,
    sessions: list[int],
    containers: list[str],
    *,
    is_reaper: bool = False,
) -> None:
    """Kill all processes of a run, and remove its containers and its folder.

    Args:
        run_id: The run's id, which is its tag and its label.
        scratch: The run's folder.
        sessions: The ids of sessions that belong to it without a tag.
        containers: The ids of containers that belong to it without a label.
        is_reaper: Whether all descendants of this process belong to it as well.
    """
    deadline = time.monotonic() + REAP_DEADLINE_S
    while time.monotonic() < deadline:
        found = members(run_id, sessions)
        if is_reaper:
            found += descendants()
        if not found:
            break
        _kill(found, deadline)
    unmount(scratch)
    if containers or (scratch / _CONTAINERS).exists():
        _remove_containers(run_id, containers)
    remove(scratch)
    # The reaper of a lane may still write there.
    while scratch.exists() and time.monotonic() < deadline:
        time.sleep(_LOOK_S)
        remove(scratch)


def unmount(folder: Path) -> None:
    """Unmount every disk below a folder, even if a file there is still open."""
    mounted = (line.split()[1] for line in Path("/proc/self/mounts").read_bytes().splitlines())
    for place in (
        os.fsdecode(place.decode("unicode_escape").encode("latin-1")) for place in mounted
    ):
        if Path(place).is_relative_to(folder):
            ctypes.CDLL(None).umount2(os.fsencode(place), DETACH)


def members(run_id: str, sessions: list[int]) -> list[int]:
    """Return the living processes of a run, without this process.

    They carry the run's tag, or belong to a recorded session.
    """
    tag = f"{RUN_VARIABLE}={run_id}".encode()
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdecimal() or int(entry) == os.getpid():
            continue
        with contextlib.suppress(OSError):  # it ended meanwhile, or is another user's
            tagged = tag in Path("/proc", entry, "environ").read_bytes().split(b"\0")
            if tagged or (sessions and _session_of(entry) in sessions):
                found.append(int(entry))
    return found


def descendants() -> list[int]:
    """Return this process's living descendants, and wait for those that ended."""
    _collect()
    table = stats()
    found = with_descendants(table, {os.getpid()}) - {os.getpid()}
    return sorted(pid for pid in found if pid in table and table[pid].state not in DEAD)


def _collect() -> None:
    """Wait for each child that has ended, so that its time is counted and its id is free."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _session_of(pid: str) -> int | None:
    """Return the session of a live process; None for a zombie, which needs no kill."""
    state, _, _, session, *_ = Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()
    return None if state in "ZX" else int(session)


def _kill(pids: list[int], deadline: float) -> None:
    """SIGKILL all of them and wait until they are gone.

    A pidfd never refers to another process that got the same id.
    """
    ended = select.poll()
    descriptors = []
    for pid in pids:
        with contextlib.suppress(OSError):
            descriptor = os.pidfd_open(pid)
            descriptors.append(descriptor)
            ended.register(descriptor, select.POLLIN)
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    waiting = set(descriptors)
    while waiting and time.monotonic() < deadline:
        for descriptor, _ in ended.poll(max(0.0, deadline - time.monotonic()) * 1000):
            ended.unregister(descriptor)
            waiting.discard(descriptor)
    for descriptor in descriptors:
        os.close(descriptor)


def _remove_containers(run_id: str, recorded: list[str]) -> None:
    """Remove the run's labelled containers, and those recorded, if there is an engine.

    The engine may still be making one that a process asked for before it was killed.
    """
    with contextlib.suppress(Exception):
        import docker

        engine = docker.from_env(timeout=10)
        own = {"label": f"{RUN_LABEL}={run_id}"}
        for rest_s in (_MADE_S, 0):
            labelled = engine.containers.list(all=True, filters=own, ignore_removed=True)
            for container_id in {*recorded, *(c.id for c in labelled)}:
                with contextlib.suppress(docker.errors.APIError):
                    engine.api.remove_container(container_id, v=True, force=True)
            time.sleep(rest_s)


def _locked(scratch: Path) -> IO[str]:
    """Return the run's lock, taken before it gets its name: a sweep never finds it free."""
    born = scratch / f"{_ALIVE}.born"
    alive = born.open("w")
    fcntl.flock(alive, fcntl.LOCK_EX)
    born.rename(scratch / _ALIVE)
    return alive


def main(run_id: str, scratch: Path, asked: socket.socket) -> None:
    """Run as the reaper: fork guards while the harness lives, then clean up."""
    for asked_to_end in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(asked_to_end, signal.SIG_IGN)
    guard.adopt_orphans()
    notes = _Notes()
    ready = select.poll()
    ready.register(sys.stdin, select.POLLIN)
    ready.register(asked, select.POLLIN)
    while not notes.is_over:
        events = dict(ready.poll())
        if events.get(asked.fileno()) and not _fork_guard(asked):
            ready.unregister(asked)
        if events.get(sys.stdin.fileno()):
            notes.read()
        _collect()
    reap(run_id, scratch, notes.sessions, notes.containers, is_reaper=True)


def _fork_guard(asked: socket.socket) -> bool:
    """Fork one guard with the socket that is sent; return whether there may be more."""
    received = socket.recv_fds(asked, 1, 1)[1]
    if not received:
        return False
    with socket.socket(fileno=received[0]) as channel:
        if os.fork():
            return True
        code = 1
        try:
            _close_all_but(channel.fileno())
            guard.main(channel)
            code = 0
        finally:
            os._exit(code)  # nothing of the reaper is done twice


def _close_all_but(kept: int) -> None:
    """Close the descriptors of the reaper, and give the standard ones to no file."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nowhere, standard)
    os.closerange(3, kept)
    os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX"))


class _Notes:
    """What the harness has told the reaper."""

    def __init__(self) -> None:
        self.sessions: list[int] = []
        self.containers: list[str] = []
        self.is_over = False
        self._half = b""

    def read(self) -> None:
        """Read what has come; the end of the pipe is the end of the harness."""
        piece = os.read(sys.stdin.fileno(), 1 << 16)
        self.is_over = not piece
        *lines, self._half = (self._half + piece).split(b"\n")
        for line in lines:
            what, _, which = line.decode(errors="replace").strip().partition(" ")
            if what == "session" and which.isdecimal():
                self.sessions.append(int(which))
            elif what == "container":
                self.containers.append(which)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), socket.socket(fileno=int(sys.argv[3])))
