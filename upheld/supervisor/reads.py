"""The files that a process reads back, seen by inotify.

Each file that is there is watched until it is read or changed, whichever comes first. A file that
is written before it is read shows nothing of what it held. A file that is only mapped into memory
is not seen. The watched process is not changed, and neither side needs root.
"""

import contextlib
import ctypes
import os
import struct
from dataclasses import dataclass, field
from typing import Final, Self

from upheld.supervisor.folders import Folder, kind_of
from upheld.verdicts import MachineLacks

# From <sys/inotify.h>.
ACCESS: Final = 0x1
MODIFY: Final = 0x2
ONCE: Final = 0x80000000
EVENT: Final = struct.Struct("iIII")
_BUFFER_BYTES: Final = 1 << 16
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


class Reads:
    """A watch on the files of a folder, each until it is read or changed."""

    def __init__(self, folder: Folder, first: str) -> None:
        """Watch a folder.

        Args:
            folder: Its files are watched, at any depth.
            first: The file that has to be watched, even if the system allows no more watches.

        Raises:
            MachineLacks: The system allows no watch at all.
        """
        self._listener = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._listener < 0:
            raise MachineLacks(f"no file can be watched here ({os.strerror(ctypes.get_errno())})")
        self._names: dict[int, str] = {}
        self._read: set[str] = set()
        others = sorted(file.name for file in folder.files() if file.name != first)
        for name in (first, *others):
            with folder.opened(name) as file:
                path = f"/proc/self/fd/{file}".encode()
                watch = _LIBC.inotify_add_watch(self._listener, path, ACCESS | MODIFY | ONCE)
            if watch < 0 and name == first:
                self.close()
                raise MachineLacks(f"no file can be watched ({os.strerror(ctypes.get_errno())})")
            self._names[watch] = name

    def names(self) -> frozenset[str]:
        """Return the names of the files that were read as they lay there."""
        with contextlib.suppress(BlockingIOError):
            while events := os.read(self._listener, _BUFFER_BYTES):
                # A file has no entries, so that no event has a name behind it.
                for watch, mask, *_ in EVENT.iter_unpack(events):
                    if mask & ACCESS:
                        self._read.add(self._names[watch])
        return frozenset(self._read)

    def close(self) -> None:
        """End the watch."""
        os.close(self._listener)

    def __enter__(self) -> Self:
        """Return the watch."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the watch."""
        self.close()


@dataclass
class KnownReads:
    """The kinds of files that a design was seen to read at a start, in a run so far."""

    read: set[str] = field(default_factory=set)
    spared: set[str] = field(default_factory=set)  # a file of that kind was torn, and not read

    def rank(self, name: str) -> int:
        """Return how likely a start reads this file: more is likelier."""
        kind = kind_of(name)
        return (kind in self.read) + (kind in self.read - self.spared)

    def learn(self, read: frozenset[str], torn: str) -> None:
        """Take what a start has read, and whether the torn file was among it."""
        self.read.update(map(kind_of, read))
        if torn not in read:
            self.spared.add(kind_of(torn))
