"""What a design does to its disks, seen at the system call and held there, with no change to the
design.

The kernel asks before each rename, unlink, fsync and close (seccomp's user notification, Linux 5.5
and later) and waits for the answer, which is to go on, or none: whoever is to die there is killed
while it waits, so that the call was never made. A cut after a call is the one before the next,
since nothing lies between them. Files that hold no more than a checksum (.crc) belong to those that
they are of. What an fsync leaves on the disk is copied, so that the disk can be rolled back to it.
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
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from upheld.injectors.disk.watched import CALLS

WATCHED = Path(__file__).with_name("watched.py")
RECEIVE, SEND, IS_VALID = 0xC0502100, 0xC0182101, 0x40082102  # ioctl numbers of <linux/seccomp.h>
QUESTION, ANSWER, GO_ON = struct.Struct("QIIiIQ6Q"), struct.Struct("QqiI"), 1
AT_FDCWD = -100
# call -> where among its arguments its paths are, each with the folder that it is relative to
PATHS = {
    "rename": ((None, 0), (None, 1)),
    "renameat": ((0, 1), (2, 3)),
    "renameat2": ((0, 1), (2, 3)),
    "unlink": ((None, 0),),
    "unlinkat": ((0, 1),),
}
# As they are called.
EFFECTS = {
    "renameat": "rename",
    "renameat2": "rename",
    "unlinkat": "unlink",
    "fdatasync": "fsync",
}
WRITABLE = os.O_WRONLY | os.O_RDWR
PATH_BYTES = 4096
KEPT = "durable"  # the folder of what stands for shared storage; any other one is an instance's own
UNIQUE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d+")
LISTENER_S = 10.0


@dataclass
class Effect:
    """A change that a process is about to make in the folder of an application, and when
    (monotonic, seconds).
    """

    folder: Path
    call: str
    path: Path  # of a rename, the new one
    pid: int
    at_s: float
    source: Path | None = None

    @property
    def api(self) -> str:
        """The call and the kind of file: `rename:durable/checkpoint/offsets/N`; numbers and unique
        ids are all alike.
        """
        return f"{self.call}:{UNIQUE.sub('N', str(self.path.relative_to(self.folder)))}"


@dataclass
class Hold:
    """Hold the n-th effect of that name in an application's folder, and with it all that come after
    it.
    """

    folder: Path
    api: str
    number: int
    struck: threading.Event = field(default_factory=threading.Event)
    effect: Effect | None = None


class Disk:
    """Watches the processes that it launches, in folders of applications below one root."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.effects: list[Effect] = []
        self.copies = self.root / "synced"
        self._synced: dict[Path, Path] = {}  # a file -> the copy of what its last fsync left
        self._hold: Hold | None = None
        self._lock = threading.Lock()

    @staticmethod
    def lacking() -> str:
        """Why nobody can be watched here; nothing where that can be done."""
        if platform.machine() not in CALLS:
            return f"system calls are known of {' and '.join(CALLS)}, not of {platform.machine()}"
        try:
            Disk(Path("/")).launch(["true"]).wait()
        except OSError as error:
            return str(error)
        return ""

    def launch(self, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """As `subprocess.Popen`, watched; OSError where the command or the kernel is not up to
        it.
        """
        ours, theirs = socket.socketpair()
        with ours, theirs:
            if not shutil.which(command[0]):
                raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
            watched = [sys.executable, "-I", "-S", str(WATCHED), str(theirs.fileno()), *command]
            process = subprocess.Popen(watched, pass_fds=[theirs.fileno()], **options)
            theirs.close()
            ours.settimeout(LISTENER_S)
            listeners = socket.recv_fds(ours, 1, 1)[1]
        if not listeners:
            process.kill()
            process.wait()
            raise OSError(
                errno.ENOSYS, "this kernel asks nobody about system calls; Linux 5.5 or later does"
            )
        threading.Thread(target=self._attend, args=listeners, name="disk", daemon=True).start()
        return process

    def arm(self, hold: Hold) -> None:
        """Hold there, and nowhere else."""
        hold.folder = hold.folder.resolve()
        self._hold = hold

    def disarm(self) -> None:
        """Hold no more; what is held has no answer, and waits for its end."""
        self._hold = None

    def of(self, folder: Path) -> list[Effect]:
        """What was done in an application's folder; a close with nothing between it and the file's
        new name is the same place.
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
        """Leave of each file there what its last fsync left, and nothing of one that had none; how
        many of each.
        """
        there, kept = [file for file in folder.resolve().rglob("*") if file.is_file()], 0
        for file in there:
            if copy := self._synced.get(file):
                shutil.copyfile(copy, file)
                kept += 1
            else:
                file.unlink()
        return kept, len(there) - kept

    def _attend(self, listener: int) -> None:
        """Answer until all who are watched have ended."""
        calls = {number: call for call, number in CALLS[platform.machine()][2].items()}
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        while (events := poll.poll()[0][1]) & select.POLLIN or not events & select.POLLHUP:
            question = bytearray(QUESTION.size)
            with contextlib.suppress(OSError):  # whoever asked may have been killed
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
            # Else another process has that number by now.
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
        """What it is in a folder of ours; None elsewhere, or where it changes nothing."""
        source = None
        if call in PATHS:
            *before, path = (self._path(pid, arguments, *where) for where in PATHS[call])
            source = next(iter(before), None)
        else:
            path = Path(f"/proc/{pid}/fd/{arguments[0]}").readlink()
        if not path.is_relative_to(self.root) or path.name.endswith(".crc"):
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
    def _path(pid: int, arguments: list[int], folder: int | None, name: int) -> Path:
        with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
            memory.seek(arguments[name])
            path = Path(os.fsdecode(memory.read(PATH_BYTES).partition(b"\0")[0]))
        within = (
            AT_FDCWD
            if folder is None
            else struct.unpack("i", struct.pack("Q", arguments[folder])[:4])[0]
        )
        own = Path(f"/proc/{pid}") / ("cwd" if within == AT_FDCWD else f"fd/{within}")
        return path if path.is_absolute() else own.readlink() / path

    def _keep(self, effect: Effect) -> None:
        """Keep what is on the disk for good once this is done, in an instance's own folder."""
        if effect.path.is_relative_to(effect.folder / KEPT):
            return
        if effect.call == "fsync" and effect.path.is_file():
            self.copies.mkdir(exist_ok=True)
            copy = self.copies / str(len(self.effects))
            shutil.copyfile(effect.path, copy)
            self._synced[effect.path] = copy
        elif effect.call == "unlink":
            self._synced.pop(effect.path, None)
        elif effect.source and (moved := self._synced.pop(effect.source, None)):
            self._synced[effect.path] = moved
