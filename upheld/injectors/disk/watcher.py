"""The changes that a design makes to its disks, seen and held at the system call.

The design is not changed for this. The kernel asks before each rename, unlink, fsync and close, by
seccomp's user notification (Linux 5.5 and later). It waits for the answer, which is to go on, or
none: an instance that is to die there is killed while it waits, so the call was never made. A crash
point after a call is the one before the next call, since nothing lies between them. Files that only
hold a checksum (.crc) belong to the files that they check. After an fsync the file is copied, so
that the disk can be rolled back to it.
"""

import contextlib
import errno
import fcntl
import os
import platform
import re
import select
import shutil
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple

from upheld import commands
from upheld.injectors.disk.shim import MACHINES
from upheld.supervisor.folders import Folder, kind_of
from upheld.supervisor.guarded import Child, Guarded, Spawn
from upheld.text import escaped
from upheld.threads import Heard
from upheld.verdicts import AdapterBreach

SHIM: Final = Path(__file__).with_name("shim.py")
# Numbers of ioctl, from <linux/seccomp.h>.
RECEIVE: Final = 0xC0502100
SEND: Final = 0xC0182101
IS_VALID: Final = 0x40082102
QUESTION: Final = struct.Struct("QIIiIQ6Q")
ANSWER: Final = struct.Struct("QqiI")
GO_ON: Final = 1
AT_FDCWD: Final = -100
CHECKSUM: Final = ".crc"


class PathAt(NamedTuple):
    """The arguments of a call that hold a path's name, and the folder it starts from."""

    name: int
    folder: int | None = None


PATHS: Final = {
    "rename": (PathAt(0), PathAt(1)),
    "renameat": (PathAt(1, folder=0), PathAt(3, folder=2)),
    "renameat2": (PathAt(1, folder=0), PathAt(3, folder=2)),
    "unlink": (PathAt(0),),
    "unlinkat": (PathAt(1, folder=0),),
}
# The name of an effect, where it is not that of the call.
EFFECTS: Final = {
    "renameat": "rename",
    "renameat2": "rename",
    "unlinkat": "unlink",
    "fdatasync": "fsync",
}
WRITABLE: Final = os.O_WRONLY | os.O_RDWR
PATH_BYTES: Final = 4096
KEPT: Final = "durable"  # stands for shared storage; all other folders are an instance's own
LISTENER_S: Final = 10.0
NO_LISTENER: Final = "this kernel asks nobody about system calls; Linux 5.5 or later does"


@dataclass
class Effect:
    """A change that a process is about to make in an application's folder.

    The time is monotonic, in seconds.
    """

    folder: Path
    call: str
    path: Path  # of a rename, the new one
    pid: int
    at_s: float
    source: Path | None = None

    @property
    def api(self) -> str:
        """The call and the kind of file, such as `rename:durable/checkpoint/offsets/N`.

        Numbers and unique ids are written as N, so that files of a kind are alike.
        """
        name = escaped(str(self.path.relative_to(self.folder)))
        return f"{self.call}:{kind_of(name)}"


@dataclass
class Hold:
    """Hold the n-th effect of a name in an application's folder, and all that follow."""

    folder: Path
    api: str
    number: int
    struck: threading.Event = field(default_factory=threading.Event)
    effect: Effect | None = None


class Disk:
    """Watch launched processes, in folders of applications below one root."""

    def __init__(self, root: Path, spawn: Spawn) -> None:
        self.root = root.resolve()
        self.spawn = spawn
        self._named = root  # as folders are named below it
        self.effects: list[Effect] = []
        self.copies = Folder(self.root, "synced")
        self._synced: dict[Path, str] = {}  # a file -> the copy of what its last fsync left
        self._hold: Hold | None = None
        self._lock = threading.Lock()

    @staticmethod
    def lacking() -> str:
        """Return why no process can be watched here; empty if processes can be."""
        if platform.machine() not in MACHINES:
            return (
                f"system calls are known of {' and '.join(MACHINES)}, not of {platform.machine()}"
            )
        ours, theirs = socket.socketpair()
        with ours, theirs:
            command = _watched([commands.program("true") or "true"], theirs)
            with subprocess.Popen(command, pass_fds=[theirs.fileno()]) as process:
                theirs.close()
                listeners = socket.recv_fds(ours, 1, 1)[1]
                process.kill()  # it waits for an answer
        for listener in listeners:
            os.close(listener)
        return "" if listeners else NO_LISTENER

    def launch(self, child: Child) -> Guarded:
        """Start a process, and watch it.

        Raises:
            OSError: There is no such command, or the kernel cannot do this.
        """
        ours, theirs = socket.socketpair()
        with ours, theirs:
            if not shutil.which(child.command[0]):
                raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
            command = _watched(child.command, theirs)
            inherited = (theirs.fileno(), *child.inherited)
            process = self.spawn(replace(child, command=command, inherited=inherited))
            theirs.close()
            ours.settimeout(LISTENER_S)
            listeners = socket.recv_fds(ours, 1, 1)[1]
        if not listeners:
            process.kill()
            process.wait()
            raise OSError(errno.ENOSYS, NO_LISTENER)
        Heard(self._attend, *listeners, name="disk").start()
        return process

    def arm(self, hold: Hold) -> None:
        """Hold that effect, and no other."""
        hold.folder = hold.folder.resolve()
        self._hold = hold

    def disarm(self) -> None:
        """Hold no further effect; a process that is held gets no answer until its end."""
        self._hold = None

    def of(self, folder: Path) -> list[Effect]:
        """Return the effects in an application's folder, in their order.

        A close is left out if the next effect gives the file its new name: both are one crash
        point.
        """
        with self._lock:
            own = [effect for effect in self.effects if effect.folder == folder.resolve()]
        sources = [*(after.source for after in own[1:]), None]
        return [
            e
            for e, source in zip(own, sources, strict=False)
            if e.call != "close" or source != e.path
        ]

    def roll_back(self, folder: Path) -> tuple[int, int]:
        """Set each file in a folder back to its last fsync, and remove those without one.

        Returns:
            How many files were set back, and how many removed.
        """
        self.copies.make()
        disk = Folder(self.root, str(folder.relative_to(self._named)))
        synced = {
            str(file.relative_to(disk.path)): copy
            for file, copy in self._synced.items()
            if file.is_relative_to(disk.path)
        }
        return disk.set_back(self.copies, synced)

    def _attend(self, listener: int) -> None:
        """Answer the kernel until all watched processes have ended."""
        calls = {number: call for call, number in MACHINES[platform.machine()].calls.items()}
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        while (events := poll.poll()[0][1]) & select.POLLIN or not events & select.POLLHUP:
            question = bytearray(QUESTION.size)
            with contextlib.suppress(OSError):  # the process that asked may have been killed
                fcntl.ioctl(listener, RECEIVE, question)
                number, pid, _, call, _, _, *arguments = QUESTION.unpack(question)
                if self._goes_on(listener, number, pid, calls[call], arguments):
                    fcntl.ioctl(listener, SEND, ANSWER.pack(number, 0, 0, GO_ON))
        os.close(listener)

    def _goes_on(
        self, listener: int, number: int, pid: int, call: str, arguments: list[int]
    ) -> bool:
        try:
            effect = self._effect(pid, call, arguments)
            # The process may be gone, and another one have its number.
            fcntl.ioctl(listener, IS_VALID, struct.pack("Q", number))
        except OSError:
            return True
        if not effect:
            return True
        with self._lock:
            if (hold := self._hold) and hold.folder == effect.folder:
                hold.number -= effect.api == hold.api
                if hold.number <= 0:
                    hold.effect = hold.effect or effect
                    hold.struck.set()
                    return False
            self.effects.append(effect)
            self._keep(effect)
        return True

    def _effect(self, pid: int, call: str, arguments: list[int]) -> Effect | None:
        """Return the effect of a call.

        It is None outside of our folders, and where the call changes nothing.
        """
        source = None
        if call in PATHS:
            *before, path = (self._path(pid, arguments, where) for where in PATHS[call])
            source = next(iter(before), None)
        else:
            path = Path(f"/proc/{pid}/fd/{arguments[0]}").readlink()
        if ".." in path.parts:  # a path that only seems to be below the root
            path = Path(os.path.normpath(path))
        if not path.is_relative_to(self.root) or path.name.endswith(CHECKSUM):
            return None
        if call == "close":
            flags = re.search(
                r"flags:\s*(\d+)",
                Path(f"/proc/{pid}/fdinfo/{arguments[0]}").read_text(encoding="ascii"),
            )
            if not (flags and int(flags[1], 8) & WRITABLE and path.is_file()):
                return None
        folder = self.root / path.relative_to(self.root).parts[0]
        return Effect(folder, EFFECTS.get(call, call), path, pid, time.monotonic(), source)

    @staticmethod
    def _path(pid: int, arguments: list[int], where: PathAt) -> Path:
        with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
            memory.seek(arguments[where.name])
            path = Path(os.fsdecode(memory.read(PATH_BYTES).partition(b"\0")[0]))
        within = AT_FDCWD
        if where.folder is not None:  # a signed number of 32 bits in a register of 64
            (within,) = struct.unpack("i", struct.pack("Q", arguments[where.folder])[:4])
        own = Path(f"/proc/{pid}") / ("cwd" if within == AT_FDCWD else f"fd/{within}")
        return path if path.is_absolute() else own.readlink() / path

    def _keep(self, effect: Effect) -> None:
        """Keep a copy of what an effect leaves on the disk, in an instance's own folder."""
        if effect.path.is_relative_to(effect.folder / KEPT):
            return
        if effect.call == "fsync":
            # What is no regular file has no copy; `roll_back` says so if it is still there.
            with contextlib.suppress(AdapterBreach):
                self._copy(effect.path)
        elif effect.call == "unlink":
            self._synced.pop(effect.path, None)
        elif effect.source and (moved := self._synced.pop(effect.source, None)):
            self._synced[effect.path] = moved

    def _copy(self, path: Path) -> None:
        copy = str(len(self.effects))
        self.copies.make()
        Folder(self.root, "").keep(str(path.relative_to(self.root)), self.copies, copy)
        self._synced[path] = copy


def _watched(command: Sequence[str], channel: socket.socket) -> list[str]:
    """Return the command that runs another one under the filter."""
    return commands.bare_python(str(SHIM), str(channel.fileno()), *command)
