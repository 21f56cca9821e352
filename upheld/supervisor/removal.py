"""Remove a folder that a design has written, and nothing else.

No link is followed, neither below the folder nor in its own place. The depth does not matter:
folders are moved up to the top before they are emptied, so only two are open at a time.
Another mount, such as a folder that a design has bound there, is left alone.
"""

import contextlib
import errno
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from uuid import uuid4

FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_REMOVAL_S: Final = 60.0
_MOUNT: Final = re.compile(r"^mnt_id:\s*(\d+)$", re.MULTILINE)


def remove(path: Path, within_s: float = _REMOVAL_S) -> bool:
    """Remove what has this path, if anything has; return whether nothing is left.

    A link is removed itself, never its target. Errors leave the rest where it is.

    Args:
        path: The path; the folders above it are trusted.
        within_s: The longest time for that, in seconds: a process may still write there.
    """
    with contextlib.suppress(OSError):
        above = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            remove_at(above, path.name, within_s)
        finally:
            os.close(above)
    return not os.path.lexists(path)


def remove_at(above: int, name: str, within_s: float = _REMOVAL_S) -> None:
    """Remove an entry of an open folder, with all that is in it.

    Raises:
        OSError: Something stays.
    """
    until = time.monotonic() + within_s
    if not _is_folder(above, name):
        os.unlink(name, dir_fd=above)
        return
    _allow(above, name)
    with opened(name, above) as top:
        _demand_one_mount(top, above)
        stuck: set[str] = set()
        while (left := set(names_in(top)) - stuck) and time.monotonic() < until:
            for each in left:
                try:
                    _remove_one(top, each)
                except OSError:
                    stuck.add(each)
    os.rmdir(name, dir_fd=above)


@contextlib.contextmanager
def opened(name: str | Path, at: int | None = None) -> Iterator[int]:
    """Yield the descriptor of a folder, opened by no link of that name.

    Args:
        name: The name of the folder, or its path.
        at: The descriptor of the folder that the name is in, if it is no path.
    """
    descriptor = os.open(name, FOLDER, dir_fd=at)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def names_in(descriptor: int) -> list[str]:
    """Return the names in an open folder, sorted."""
    with os.scandir(descriptor) as entries:
        return sorted(entry.name for entry in entries)


def mount_of(descriptor: int) -> str:
    """Return the number of the mount that an open file lies on."""
    found = _MOUNT.search(Path(f"/proc/self/fdinfo/{descriptor}").read_text(encoding="ascii"))
    return found[1] if found else ""


def _remove_one(top: int, name: str) -> None:
    """Remove an entry of the top folder; if it is a folder, its own folders are moved up."""
    if not _is_folder(top, name):
        os.unlink(name, dir_fd=top)
        return
    _allow(top, name)
    with opened(name, top) as folder:
        _demand_one_mount(folder, top)
        for each in names_in(folder):
            with contextlib.suppress(FileNotFoundError):
                if _is_folder(folder, each):
                    _allow(folder, each)
                    os.rename(each, uuid4().hex, src_dir_fd=folder, dst_dir_fd=top)
                else:
                    os.unlink(each, dir_fd=folder)
    os.rmdir(name, dir_fd=top)


def _demand_one_mount(folder: int, above: int) -> None:
    """Raise OSError for a folder that is mounted from elsewhere."""
    if mount_of(folder) != mount_of(above):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))


def _is_folder(at: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode)


def _allow(at: int, name: str) -> None:
    """Give this user all rights to a folder: a design may have taken them away."""
    if os.stat(name, dir_fd=at, follow_symlinks=False).st_mode & stat.S_IRWXU == stat.S_IRWXU:
        return
    descriptor = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
    try:
        Path(f"/proc/self/fd/{descriptor}").chmod(stat.S_IRWXU)
    finally:
        os.close(descriptor)
