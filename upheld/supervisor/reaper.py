"""The reaper: nothing survives the end of a run but its output.

All processes, containers and other folders of the run are removed. A run may end by a SIGKILL of
the harness itself, so another process has to clean up. The reaper is one small process in a session
of its own, started before anything that it has to clean. It holds the read end of a pipe whose
write end only the harness has. When the harness dies, the pipe ends and the reaper begins.

A process belongs to a run if it carries the run's tag in its environment. Children inherit it
through setsid, setpgid and double forks. Parent-death signals, process groups and parent pids do
not survive these. Sessions can be recorded as well, for programs that write over their environment.
Containers are the engine's children, and carry a label.

If the reaper dies too, the lock that both held on the run's scratch folder becomes free, and the
next run sweeps.
"""

import contextlib
import ctypes
import fcntl
import os
import re
import select
import shutil
import signal
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

RUN_VARIABLE: Final = "UPHELD_RUN"
RUN_LABEL: Final = "upheld.run"  # on every container of a run
REAP_DEADLINE_S: Final = 20.0
_SCRATCH_PREFIX: Final = "upheld-"
_ALIVE: Final = ".alive"  # locked by harness and reaper together, so free only without both
_CONTAINERS: Final = ".containers"  # its presence says that containers have to be looked for
_BIRTH_S: Final = 60.0
DETACH: Final = 2  # of umount2
_LOOK_S: Final = 0.05
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
        self._reaper = subprocess.Popen(
            commands.own_module("upheld.supervisor.reaper", self.run_id, str(self.scratch)),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=[self._alive.fileno()],
            cwd="/",
            text=True,
            bufsize=1,
            env=inherited,
        )

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
                    shutil.rmtree(folder, ignore_errors=True)
                continue
            with (folder / _ALIVE).open("r+") as alive:
                # This raises an OSError while harness or reaper live.
                fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
                reap(named[1], folder, [], [])
                swept.append(named[1])
    return swept


def reap(run_id: str, scratch: Path, sessions: list[int], containers: list[str]) -> None:
    """Kill all processes of a run, and remove its containers and its folder."""
    deadline = time.monotonic() + REAP_DEADLINE_S
    while time.monotonic() < deadline:
        found = members(run_id, sessions)
        if not found:
            break
        _kill(found, deadline)
    unmount(scratch)
    if containers or (scratch / _CONTAINERS).exists():
        _remove_containers(run_id, containers)
    shutil.rmtree(scratch, ignore_errors=True)
    # The reaper of a lane may still write there.
    while scratch.exists() and time.monotonic() < deadline:
        time.sleep(_LOOK_S)
        shutil.rmtree(scratch, ignore_errors=True)


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
    """Remove the run's labelled containers, and those recorded, if there is an engine."""
    with contextlib.suppress(Exception):
        import docker

        engine = docker.from_env(timeout=10)
        labelled = engine.containers.list(all=True, filters={"label": f"{RUN_LABEL}={run_id}"})
        for container_id in {*recorded, *(c.id for c in labelled)}:
            with contextlib.suppress(docker.errors.APIError):
                engine.api.remove_container(container_id, v=True, force=True)


def _locked(scratch: Path) -> IO[str]:
    """Return the run's lock, taken before it gets its name: a sweep never finds it free."""
    born = scratch / f"{_ALIVE}.born"
    alive = born.open("w")
    fcntl.flock(alive, fcntl.LOCK_EX)
    born.rename(scratch / _ALIVE)
    return alive


def main(run_id: str, scratch: Path) -> None:
    """Run as the reaper: take notes until the harness is gone, then clean up."""
    for asked_to_end in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(asked_to_end, signal.SIG_IGN)
    sessions: list[int] = []
    containers: list[str] = []
    for line in sys.stdin:
        what, _, which = line.strip().partition(" ")
        if what == "session" and which.isdecimal():
            sessions.append(int(which))
        elif what == "container":
            containers.append(which)
    reap(run_id, scratch, sessions, containers)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
