"""The output folder, to which one run at a time writes.

A run writes over no file that another program wrote, and through no link.
"""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from upheld.errors import UsageProblem

LOCK: Final = ".upheld-lock"  # holds the process that writes here
ELSEWHERE: Final = "name another folder with --out"
# A file that a run writes over -> what those of runs begin with.
FILES: Final = {
    "report.jsonl": (b'{"kind":',),
    "sweep.jsonl": (b'{"',),
    "junit.xml": (b"<?xml", b"<testsuite"),
    "index.html": (b"<!doctype html><!-- a report of upheld -->",),
    "summary.md": (b"# Upheld: ",),
    "annotations.txt": (b"::",),
    "badge.json": (b'{\n  "schemaVersion": 1,\n  "label": "upheld"',),
    "verdicts.json": (b'{\n  "columns": [',),
    "messages.ndjson": (b'{"meta": {"protocolVersion": ',),
}
HISTORIES: Final = "history"
LOGS: Final = "logs"
FOLDERS: Final = (HISTORIES, LOGS)
LANES: Final = "lane-*"
_HEAD_BYTES: Final = 64


def named_in(folder: Path, name: str) -> Path | None:
    """Return a file that a report names; None if it is no file of the report's folder.

    A report may come from anywhere. No file above its folder is read, and none through a link.
    """
    path = folder / name
    with suppress(OSError, ValueError):  # no system has a file of that name
        is_kept = bool(name) and path.is_file() and not path.is_symlink()
        if is_kept and path.resolve().is_relative_to(folder.resolve()):
            return path
    return None


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Keep every other run out of a folder, as long as this one writes there.

    Raises:
        UsageProblem: Another run has the folder, or a file there is none of a run.
        OSError: The folder cannot be written.
    """
    descriptor = _taken(out)
    try:
        _demand_ours(out)
        yield
    finally:
        with suppress(OSError):
            (out / LOCK).unlink()
        os.close(descriptor)


def _taken(out: Path) -> int:
    """Return the lock of a folder, as an open descriptor.

    The file is removed at the end of a run. So the one that is locked may be there no more.
    """
    while True:
        descriptor = os.open(out / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_there(descriptor, out / LOCK):
                os.ftruncate(descriptor, 0)
                os.write(descriptor, f"{os.getpid()}\n".encode())
                return descriptor
        except BlockingIOError:
            pid = os.pread(descriptor, _HEAD_BYTES, 0).decode(errors="replace").strip()
            whose = f"process {pid}" if pid.isdecimal() else "another process"
            os.close(descriptor)
            raise UsageProblem(
                f"The output folder {out} is in use by the run of {whose}; {ELSEWHERE}."
            ) from None
        os.close(descriptor)


def _is_there(descriptor: int, file: Path) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), file.lstat())
    return False


def _demand_ours(out: Path) -> None:
    """Raise UsageProblem if a run would write over what no run has written, or through a link."""
    for folder in (*(out / name for name in FOLDERS), *out.glob(LANES)):
        mode = _mode(folder)
        if mode and not stat.S_ISDIR(mode):
            raise UsageProblem(f"{folder} is no folder of a run; {ELSEWHERE}.")
    for name in FILES:
        if not is_ours(out / name, name):
            raise UsageProblem(f"{out / name} was written by no run; {ELSEWHERE}.")


def is_ours(path: Path, name: str) -> bool:
    """Return whether a file may be written over as the one of that name in `FILES`.

    That is so if a run wrote it, or nothing is there.
    """
    mode = _mode(path)
    return not mode or (stat.S_ISREG(mode) and _begins(path, FILES[name]))


def _mode(path: Path) -> int:
    """Return the mode of a file, not of the one that a link leads to; 0 if there is none."""
    with suppress(FileNotFoundError):
        return path.lstat().st_mode
    return 0


def _begins(file: Path, beginnings: tuple[bytes, ...]) -> bool:
    """Return whether a file is empty, or begins as one of a run does."""
    with file.open("rb") as opened:
        head = opened.read(_HEAD_BYTES)
    return not head or head.startswith(beginnings)
