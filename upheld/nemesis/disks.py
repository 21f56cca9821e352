"""What becomes of an application's disks: wiped, set back, with no room left, or with half of a
file after a crash.

A disk that can be filled is a small file system in memory, which the kernel lets nobody mount but
root.
"""

import contextlib
import ctypes
import os
import shutil
import stat
from pathlib import Path

from upheld.history.marks import Happening
from upheld.trial.application import Application
from upheld.trial.instances import Launch
from upheld.trial.trial import Trial
from upheld.verdicts import MachineLacks, MarkMissed, NotOffered

FULL_S = 3.0
PIECE_BYTES = 1 << 16
CHECKSUM = ".crc"  # belongs to the file that it is of
NO_SETUID_NO_DEVICES = 6


def mount(folder: Path, size_mb: int) -> None:
    """Give a folder a disk of its own, of so many MiB; MachineLacks where that is not allowed."""
    folder.mkdir(parents=True, exist_ok=True)
    size = f"size={size_mb}m,mode=700".encode()
    if ctypes.CDLL(None).mount(b"tmpfs", bytes(folder), b"tmpfs", NO_SETUID_NO_DEVICES, size):
        raise MachineLacks("a small disk is mounted by root alone")


def run_full(trial: Trial, application: Application) -> None:
    """Leave no room on the disks of an application that writes to them, until instance a stops
    loudly or is killed; mark it.
    """
    folder, instance = application.directory, application.running["a"]
    first, filler = files_of(folder), folder / "filler"
    if not trial.recorder.wait(trial.rig.progress_s, lambda: files_of(folder) != first):
        raise NotOffered(f"{trial.manifest.name} writes to no disk while more of its input arrives")
    try:
        with filler.open("wb", buffering=0) as file:
            while _takes(file.fileno()):
                pass
        trial.recorder.wait(FULL_S, lambda: instance.is_over)
        filled_bytes = filler.stat().st_size
        if instance.failed:
            trial.instances.gave_up(application, "a")
        else:
            trial.monitor.tick(application)
            trial.instances.kill(application)
    finally:
        filler.unlink(missing_ok=True)
    said = instance.failed.message if instance.failed else ""
    trial.mark(Happening.DISK_FULL, filled_bytes=filled_bytes, said=said)


def tear(trial: Trial, application: Application) -> None:
    """Of the file that was written last on a disk of an application that is down, leave the first
    half; mark which it is.
    """
    files = [
        (changed_ns, file)
        for file, size_bytes, changed_ns in files_of(application.directory)
        if size_bytes
    ]
    if not files:
        raise NotOffered(f"{trial.manifest.name} keeps no file that could be torn")
    _, torn = max(files)
    size_bytes = (path := application.directory / torn).stat().st_size
    os.truncate(path, size_bytes // 2)
    trial.mark(Happening.FILE_TORN, file=torn, size_bytes=size_bytes, left_bytes=size_bytes // 2)


def start_torn(trial: Trial, application: Application) -> None:
    """Start instance a on disks that are torn; where it says so, put the copy of them in their
    place, and start it again.
    """
    instance = trial.instances.start(application, launch=Launch(may_refuse=True))
    if instance is not None:
        trial.recorder.wait(
            trial.rig.progress_s, lambda: instance.is_over or trial.monitor.is_drained(application)
        )
        if not instance.failed:
            trial.monitor.tick(application)
            return
        trial.instances.gave_up(application, "a")
    else:
        trial.instances.let_go(application, "a")
    set_back(trial, application)
    trial.instances.start(application)


def files_of(folder: Path) -> set[tuple[str, int, int]]:
    """The files under a folder: name, size in bytes, and when it was changed (nanoseconds)."""
    found = set()
    for file in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # it has gone meanwhile, or has another name
            known = file.stat()
            if stat.S_ISREG(known.st_mode) and file.suffix != CHECKSUM:
                found.add((str(file.relative_to(folder)), known.st_size, known.st_mtime_ns))
    return found


def _takes(file: int) -> bool:
    """Whether one more piece has room, or a part of it."""
    try:
        return os.write(file, bytes(PIECE_BYTES)) > 0
    except OSError:
        return False


def wipe(
    trial: Trial, application: Application, name: str = "a", *, may_be_empty: bool = False
) -> None:
    """Delete the instance's own disk, and mark what was there; MarkMissed where that should have
    been something.
    """
    folder = application.directory / name
    files = [f for f in folder.rglob("*") if f.is_file()]
    size = sum(f.stat().st_size for f in files)
    shutil.rmtree(folder)
    if not (size or may_be_empty) and trial.manifest.local_state:
        raise MarkMissed(
            f"{trial.manifest.name} keeps local state by its manifest, and its state_dir holds no "
            "byte"
        )
    trial.mark(
        Happening.DISK_WIPED,
        files=len(files),
        size_bytes=size,
        local_state=trial.manifest.local_state,
    )


def keep(application: Application) -> None:
    """Copy every disk of an application that is down."""
    shutil.copytree(application.directory, application.kept)


def set_back(trial: Trial, application: Application) -> None:
    """Put the copy in the place of the disks; MarkMissed where nothing has changed on them that
    should have.
    """
    now, then = (
        {file[:2] for file in files_of(folder)}
        for folder in (application.directory, application.kept)
    )
    if now == then and trial.manifest.local_state:
        raise MarkMissed(
            f"{trial.manifest.name} keeps local state by its manifest, and nothing changed on its "
            "disks"
        )
    shutil.rmtree(application.directory)
    shutil.copytree(application.kept, application.directory)
    trial.mark(
        Happening.DISK_SET_BACK,
        files_before=len(then),
        changed=len(now ^ then),
        local_state=trial.manifest.local_state,
    )
