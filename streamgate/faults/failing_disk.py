"""Disks of an application that fail as disks do: one has no room left, or of a file only the beginning is there after a crash.

A disk that can be filled is a small file system in memory, which the kernel lets nobody mount but root.
"""

import contextlib
import ctypes
import os
import stat
from pathlib import Path

from streamgate.checks.lag import TORN
from streamgate.trial import Application, Trial
from streamgate.verdicts import NotOffered

FULL_S = 3.0
PIECE_BYTES = 1 << 16
CHECKSUM = ".crc"  # belongs to the file that it is of
NO_SETUID_NO_DEVICES = 6


def mount(folder: Path, size_mb: int) -> None:
    """Give a folder a disk of its own, of so many MiB; NotOffered where that is not allowed."""
    folder.mkdir(parents=True, exist_ok=True)
    size = f"size={size_mb}m,mode=700".encode()
    if ctypes.CDLL(None).mount(b"tmpfs", bytes(folder), b"tmpfs", NO_SETUID_NO_DEVICES, size):
        raise NotOffered("a small disk is mounted by root alone")


def run_full(trial: Trial, application: Application) -> None:
    """Leave no room on the disks of an application that writes to them, until instance a stops loudly or is killed; mark it."""
    first, instance, filler = files_of(application), application.running["a"], application.directory / "filler"
    if not trial.wait(trial.bench.progress_s, lambda: files_of(application) != first):
        raise NotOffered(f"{trial.manifest.name} writes to no disk while more of its input arrives")
    try:
        with filler.open("wb", buffering=0) as file:
            while _takes(file.fileno()):
                pass
        trial.wait(FULL_S, lambda: instance.is_over)
        filled_bytes = filler.stat().st_size
        if instance.failed:
            trial.gave_up(application, "a")
        else:
            trial.look_after(application)
            trial.kill(application)
    finally:
        filler.unlink(missing_ok=True)
    said = instance.failed.message if instance.failed else ""
    trial.mark("no room is left on its disks", filled_bytes=filled_bytes, said=said)


def tear(trial: Trial, application: Application) -> None:
    """Of the file that was written last on a disk of an application that is down, leave the first half; mark which it is."""
    files = [(changed_ns, file) for file, size_bytes, changed_ns in files_of(application) if size_bytes]
    if not files:
        raise NotOffered(f"{trial.manifest.name} keeps no file that could be torn")
    _, torn = max(files)
    size_bytes = (path := application.directory / torn).stat().st_size
    os.truncate(path, size_bytes // 2)
    trial.mark(TORN, file=torn, size_bytes=size_bytes, left_bytes=size_bytes // 2)


def start_torn(trial: Trial, application: Application) -> None:
    """Start instance a on disks that are torn; where it says so, put the copy of them in their place, and start it again."""
    instance = trial.start(application, may_refuse=True)
    if instance is not None:
        trial.wait(trial.bench.progress_s, lambda: instance.is_over or trial.is_drained(application))
        if not instance.failed:
            trial.look_after(application)
            return
        trial.gave_up(application, "a")
    else:
        trial.let_go(application, "a")
    trial.set_disks_back(application)
    trial.start(application)


def files_of(application: Application) -> set[tuple[str, int, int]]:
    """The files on the disks of an application: name, size in bytes, and when it was changed (nanoseconds)."""
    found = set()
    for file in application.directory.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # it has gone meanwhile, or has another name
            known = file.stat()
            if stat.S_ISREG(known.st_mode) and file.suffix != CHECKSUM:
                found.add((str(file.relative_to(application.directory)), known.st_size, known.st_mtime_ns))
    return found


def _takes(file: int) -> bool:
    """Whether one more piece has room, or a part of it."""
    try:
        return os.write(file, bytes(PIECE_BYTES)) > 0
    except OSError:
        return False
