"""The folders that a design writes, handled without following a link.

A design may replace any file or folder of its own by a link, at any level and at any moment. So
each folder is opened below the one above it, never by its path, and a link is never opened. A disk
holds folders and regular files; anything else there is the design's breach.
"""

import contextlib
import errno
import os
import re
import shutil
import stat
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import IO, Final, NamedTuple
from uuid import uuid4

from upheld.supervisor.removal import FOLDER, mount_of, names_in, opened, remove_at
from upheld.text import visible
from upheld.verdicts import AdapterBreach

MOST_DEPTH: Final = 64
CHUNK_BYTES: Final = 1 << 20
# A UUID, the part of an application id that each attempt has of its own, or a number.
UNIQUE: Final = re.compile(
    r"[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}"
    r"|(?<![0-9a-z])[0-9a-f]{16}(?![0-9a-z])"
    r"|\d+"
)
_SHOWN_CHARS: Final = 200
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHANGE: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MACHINE: Final = {errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EIO}
_KINDS: Final = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFSOCK: "a socket",
    stat.S_IFIFO: "a pipe",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a folder",
}


def kind_of(name: str) -> str:
    """Return the kind of a file: its name with N for each number and unique id."""
    return UNIQUE.sub("N", name)


class File(NamedTuple):
    """A regular file: its name below the folder, and its status when it was seen."""

    name: str
    size_bytes: int
    changed_ns: int
    inode: int
    links: int


class _Entry(NamedTuple):
    """An entry of an open folder, while that is open."""

    at: int
    where: str  # below the top
    name: str
    known: os.stat_result


@dataclass(frozen=True)
class Folder:
    """A folder that a design may have changed, below one that the harness made.

    Every method raises AdapterBreach, with one sentence, if something else than folders and regular
    files is in its way.
    """

    base: Path
    name: str

    def __truediv__(self, name: str) -> "Folder":
        return Folder(self.base, f"{self.name}/{name}")

    @property
    def path(self) -> Path:
        """The path, to be told to a design; the harness never opens it."""
        return self.base / self.name

    def make(self) -> None:
        """Make the folder and those above it, where they are missing."""
        with contextlib.ExitStack() as held:
            at = held.enter_context(self._entered(self.base, None, self.base.name))
            for part in PurePath(self.name).parts:
                with self._told(part), contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=at)
                at = held.enter_context(self._entered(part, at, self.name))

    def files(self) -> list[File]:
        """Return all regular files at any depth; one that goes meanwhile is left out."""
        with self._open() as top:
            return [
                File(
                    entry.where,
                    entry.known.st_size,
                    entry.known.st_mtime_ns,
                    entry.known.st_ino,
                    entry.known.st_nlink,
                )
                for entry in self._entries(top, "", mount_of(top), 0)
                if stat.S_ISREG(entry.known.st_mode)
            ]

    def remove(self) -> None:
        """Remove the folder, whatever is in it."""
        *above, name = PurePath(self.name).parts
        with Folder(self.base, "/".join(above))._open() as at, self._told(""):
            remove_at(at, name)

    def copy_to(self, other: "Folder") -> None:
        """Copy the folder, with the modes and the times of its files, to a new one."""
        files = self.files()
        free_bytes = shutil.disk_usage(self.base).free
        if (size_bytes := sum(file.size_bytes for file in files)) > free_bytes:
            raise AdapterBreach(
                f"the disk {self.name} holds {size_bytes} bytes, and {free_bytes} are free to copy "
                "them"
            )
        with contextlib.ExitStack() as held:
            above = held.enter_context(self._entered(other.base, None, other.base.name))
            with self._told(other.name):
                os.mkdir(other.name, dir_fd=above)
            to = held.enter_context(self._entered(other.name, above, other.name))
            with self._open() as top:
                self._copy(top, to)

    def _copy(self, top: int, to: int) -> None:
        """Copy all that is in one open folder to another."""
        made = [("", os.dup(to))]  # the folders that are being filled, each in the one before
        try:
            for at, where, name, known in self._entries(top, "", mount_of(top), 0):
                while made[-1][0] != where.rpartition("/")[0]:
                    os.close(made.pop()[1])
                into = made[-1][1]
                with self._told(where):
                    if stat.S_ISDIR(known.st_mode):
                        os.mkdir(name, dir_fd=into)
                        made.append((where, os.open(name, FOLDER, dir_fd=into)))
                    else:
                        with self._file(at, name, _READ) as source:
                            _write_new(into, name, source)
        finally:
            for _, descriptor in made:
                os.close(descriptor)

    def halve(self, name: str) -> tuple[int, int]:
        """Cut off the second half of a file; return its bytes before and after.

        A file that has another name outside of this folder is not touched.
        """
        files = self.files()
        names = Counter(file.inode for file in files)
        file = next((file for file in files if file.name == name), None)
        if file is None:
            raise self._odd(self._path(name), "has gone while the design was down")
        if file.links > names[file.inode]:
            raise self._odd(self._path(name), "is a hard link to a file of another folder")
        with self._at(name, _CHANGE) as changed:
            size_bytes = os.fstat(changed.fileno()).st_size
            os.ftruncate(changed.fileno(), size_bytes // 2)
        return size_bytes, size_bytes // 2

    @contextlib.contextmanager
    def new_file(self) -> Iterator[IO[bytes]]:
        """Yield a new unbuffered file of the harness in the folder, and remove it."""
        name = f"upheld-{uuid4().hex}"
        with self._open() as top:
            with self._told(name):
                descriptor = os.open(name, _NEW, 0o600, dir_fd=top)
            try:
                with os.fdopen(descriptor, "wb", buffering=0) as file:
                    yield file
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=top)

    def read(self, name: str, most_bytes: int) -> bytes:
        """Return the content of a file of at most so many bytes."""
        with self._at(name, _READ) as file:
            content = file.read(most_bytes + 1)
        if len(content) > most_bytes:
            raise self._odd(self._path(name), f"has more than {most_bytes} bytes")
        return content

    @contextlib.contextmanager
    def opened(self, name: str) -> Iterator[int]:
        """Yield the descriptor of a file, which is not read."""
        with self._at(name, _READ) as file:
            yield file.fileno()

    def keep(self, name: str, copies: "Folder", copy: str) -> None:
        """Copy a file to a new one in a folder of copies."""
        with self._at(name, _READ) as source, copies._open() as to:
            _write_new(to, copy, source)

    def set_back(self, copies: "Folder", synced: Mapping[str, str]) -> tuple[int, int]:
        """Set each file back to its copy, and remove those that have none.

        A file is replaced by a new one, so that its other names keep what they have.

        Args:
            copies: The folder of the copies.
            synced: The name of a file to the name of its copy.

        Returns:
            How many files were set back, and how many removed.
        """
        kept = removed = 0
        with self._open() as top, copies._open() as source:
            for at, where, name, known in self._entries(top, "", mount_of(top), 0):
                if not stat.S_ISREG(known.st_mode):
                    continue
                copy = synced.get(where)
                with self._told(where):
                    os.unlink(name, dir_fd=at)
                    if copy:
                        with self._file(source, copy, _READ) as content:
                            _write_new(at, name, content, known)
                kept += copy is not None
                removed += copy is None
        return kept, removed

    # --- how a name is reached

    @contextlib.contextmanager
    def _open(self) -> Iterator[int]:
        """Yield the folder's descriptor."""
        with contextlib.ExitStack() as held:
            at = held.enter_context(self._entered(self.base, None, self.base.name))
            mount = ""  # of the first folder, which may be a disk of its own
            for path in reversed([PurePath(self.name), *PurePath(self.name).parents][:-1]):
                at = held.enter_context(self._entered(path.name, at, str(path)))
                mount = mount or mount_of(at)
                if mount_of(at) != mount:
                    raise self._odd(self.name, "is mounted from elsewhere")
            yield at

    @contextlib.contextmanager
    def _at(self, name: str, flags: int) -> Iterator[IO[bytes]]:
        """Yield a regular file at any depth of the folder."""
        *above, own = PurePath(name).parts
        with contextlib.ExitStack() as held:
            at = held.enter_context(self._open())
            for part in above:
                at = held.enter_context(self._entered(part, at, self._path(name)))
            held.enter_context(self._told(name))
            yield held.enter_context(self._file(at, own, flags))

    @contextlib.contextmanager
    def _entered(self, name: str | Path, at: int | None, where: str) -> Iterator[int]:
        """Yield the descriptor of a folder, or say what stands there instead."""
        with contextlib.ExitStack() as held:
            try:
                descriptor = held.enter_context(opened(name, at))
            except OSError as error:
                raise self._odd(where, self._instead(name, at, error)) from None
            yield descriptor

    @staticmethod
    def _instead(name: str | Path, at: int | None, error: OSError) -> str:
        """Return what has a folder's name, or why it cannot be opened."""
        try:
            known = os.stat(name, dir_fd=at, follow_symlinks=False)
        except OSError as refusal:
            return f"cannot be opened ({refusal.strerror})"
        if stat.S_ISDIR(known.st_mode):
            return f"cannot be opened ({error.strerror})"
        return f"is {_kind(known)}"

    @contextlib.contextmanager
    def _file(self, at: int, name: str, flags: int) -> Iterator[IO[bytes]]:
        """Yield a regular file of an open folder."""
        mode = "rb" if flags == _READ else "r+b"
        with os.fdopen(os.open(name, flags, dir_fd=at), mode) as file:
            known = os.fstat(file.fileno())
            if not stat.S_ISREG(known.st_mode):
                raise self._odd(self._path(name), f"is {_kind(known)}")
            yield file

    def _entries(self, at: int, within: str, mount: str, depth: int) -> Iterator[_Entry]:
        """Yield all entries below an open folder, a folder before what is in it."""
        if depth > MOST_DEPTH:
            raise self._odd(self._path(within), f"is nested deeper than {MOST_DEPTH} folders")
        with self._told(within):
            names = names_in(at)
        for name in names:
            where = f"{within}/{name}" if within else name
            try:
                known = os.stat(name, dir_fd=at, follow_symlinks=False)
            except FileNotFoundError:  # it has gone meanwhile, or has another name
                continue
            self._demand_plain(where, known)
            yield _Entry(at, where, name, known)
            if stat.S_ISDIR(known.st_mode):
                yield from self._below(at, where, name, mount, depth)

    def _below(self, at: int, where: str, name: str, mount: str, depth: int) -> Iterator[_Entry]:
        """Yield the entries of a folder in an open one, unless the folder has gone."""
        with contextlib.ExitStack() as held:
            try:
                folder = held.enter_context(opened(name, at))
            except FileNotFoundError:
                return
            except OSError as error:
                raise self._odd(self._path(where), self._instead(name, at, error)) from None
            if mount_of(folder) != mount:
                raise self._odd(self._path(where), "is mounted from elsewhere")
            yield from self._entries(folder, where, mount, depth + 1)

    def _demand_plain(self, where: str, known: os.stat_result) -> None:
        """Raise AdapterBreach unless it is a folder or a regular file with a name in UTF-8."""
        if not (stat.S_ISREG(known.st_mode) or stat.S_ISDIR(known.st_mode)):
            raise self._odd(self._path(where), f"is {_kind(known)}")
        try:
            where.encode()
        except UnicodeEncodeError:
            raise self._odd(self._path(where), "has a name that is not UTF-8") from None

    # --- what a breach says

    @contextlib.contextmanager
    def _told(self, name: str) -> Iterator[None]:
        """Turn an error of the system into a breach that names the file."""
        try:
            yield
        except OSError as error:
            if error.errno in _MACHINE:
                raise
            raise self._odd(
                self._path(name), f"cannot be read or changed ({error.strerror})"
            ) from None

    def _path(self, name: str) -> str:
        return f"{self.name}/{name}" if name else self.name

    @staticmethod
    def _odd(where: str, what: str) -> AdapterBreach:
        return AdapterBreach(
            f"{visible(where, _SHOWN_CHARS)} {what}; expected folders and regular files on a "
            "design's disk"
        )


def _kind(known: os.stat_result) -> str:
    return _KINDS.get(stat.S_IFMT(known.st_mode), "no file")


def _write_new(at: int, name: str, source: IO[bytes], like: os.stat_result | None = None) -> None:
    """Write a new file into an open folder, with the mode and the times of another one."""
    known = like or os.fstat(source.fileno())
    with os.fdopen(os.open(name, _NEW, 0o600, dir_fd=at), "wb") as file:
        shutil.copyfileobj(source, file, CHUNK_BYTES)
        file.flush()
        os.fchmod(file.fileno(), stat.S_IMODE(known.st_mode))
        os.utime(file.fileno(), ns=(known.st_atime_ns, known.st_mtime_ns))
