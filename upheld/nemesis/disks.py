"""Faults of an application's disks: wiped, set back, full, or torn by a crash.

A disk that can be filled is a small file system in memory. The kernel lets root alone mount it.
"""

import ctypes
import os

from upheld.checks.places import names_file
from upheld.history.events import Mark
from upheld.history.evidence import TornFile
from upheld.history.marks import Happening
from upheld.supervisor.folders import Folder
from upheld.supervisor.instance import Instance
from upheld.supervisor.reads import KnownReads, Reads
from upheld.trial.application import Application
from upheld.trial.instances import Launch
from upheld.trial.trial import Trial
from upheld.verdicts import Inconclusive, MachineLacks, MarkMissed, Undeclared

FULL_S = 3.0
PIECE_BYTES = 1 << 16
CHECKSUM = ".crc"  # the suffix of a file that holds the checksum of another one
NO_SETUID_NO_DEVICES = 6
MOST_SAID_CHARS = 1000  # of a line of a log
MOST_COMPARED_BYTES = 1 << 20  # of a file, when disks are compared


def mount(folder: Folder, size_mb: int) -> None:
    """Give a folder a disk of its own, of so many MiB.

    Raises:
        MachineLacks: This process may mount no disk.
    """
    folder.make()
    size = f"size={size_mb}m,mode=700".encode()
    if ctypes.CDLL(None).mount(b"tmpfs", bytes(folder.path), b"tmpfs", NO_SETUID_NO_DEVICES, size):
        raise MachineLacks("a small disk is mounted by root alone")


def run_full(trial: Trial, application: Application) -> None:
    """Leave no room on the disks of an application, and mark that.

    Instance a may stop loudly within 3 seconds; if it does not, it is killed.

    Raises:
        Undeclared: The design writes to no disk while more of its input arrives.
    """
    folder = application.disks
    instance = application.running["a"]
    first = files_of(folder)
    if not trial.recorder.wait(trial.rig.progress_s, lambda: files_of(folder) != first):
        raise Undeclared(f"{trial.manifest.name} writes to no disk while more of its input arrives")
    with folder.new_file() as filler:
        while _takes(filler.fileno()):
            pass
        trial.recorder.wait(FULL_S, lambda: instance.is_over)
        filled_bytes = os.fstat(filler.fileno()).st_size
        if instance.failed:
            trial.instances.gave_up(application, "a")
        else:
            trial.monitor.tick(application)
            trial.instances.kill(application)
    message = instance.failed.message if instance.failed else ""
    trial.mark(Happening.DISK_FULL, filled_bytes=filled_bytes, said=message)


def tear(trial: Trial, application: Application) -> None:
    """Cut off the second half of the newest file that a start reads.

    A mark says which file it is. The application is down. Which files a start reads is known from
    the starts before, of other attempts at this design and program. Before the first one it is the
    newest file.

    Raises:
        Undeclared: The design keeps no file with anything in it.
    """
    disks = application.disks
    known = _known_reads(trial, application)
    files = [
        (known.rank(file), changed_ns, file)
        for file, size_bytes, changed_ns in files_of(disks)
        if size_bytes
    ]
    if not files:
        raise Undeclared(f"{trial.manifest.name} keeps no file that could be torn")
    *_, torn = max(files)
    size_bytes, left_bytes = disks.halve(torn)
    trial.mark(Happening.FILE_TORN, file=torn, size_bytes=size_bytes, left_bytes=left_bytes)


def start_torn(trial: Trial, application: Application) -> None:
    """Start instance a on torn disks; if it stops loudly, start it on their copy.

    Raises:
        MarkMissed: It goes on, and has read other files than the torn one.
        Inconclusive: It goes on, and has read no file that was there.
    """
    torn = next(
        TornFile.of(mark).file
        for mark in reversed(list(trial.history.of(Mark)))
        if mark.happening is Happening.FILE_TORN
    )
    with Reads(application.disks, torn) as reads:
        stopped = _stopped(trial, application)
        read = reads.names()
    _known_reads(trial, application).learn(read, torn)
    if torn in read:
        trial.mark(Happening.TORN_FILE_READ, file=torn)
    elif stopped is None:
        how = f"{trial.manifest.name} did not read {torn}, which was torn"
        if not read:
            raise Inconclusive(f"{how}, nor any other file that was on its disks")
        raise MarkMissed(how)
    if stopped:
        _mark_named(trial, stopped, torn)
        set_back(trial, application)
        trial.instances.start(application)


def _mark_named(trial: Trial, stopped: Instance, torn: str) -> None:
    """Mark the line in which the log of an application without an adapter names a torn file.

    Its log is all that it says, and its end may be of what it did after the error. A design with an
    adapter names the file in its `failed`.
    """
    if trial.manifest.application is None:
        return
    line = next((each for each in stopped.log.last_lines() if names_file(each, torn)), None)
    if line is not None:
        trial.mark(Happening.TORN_FILE_NAMED, file=torn, line=line[:MOST_SAID_CHARS])


def _known_reads(trial: Trial, application: Application) -> KnownReads:
    """Return what starts of this design were seen to read in this program."""
    key = trial.manifest.name, application.program.name
    return trial.rig.known_reads.setdefault(key, KnownReads())


def _stopped(trial: Trial, application: Application) -> Instance | None:
    """Start instance a, and return it if it stops loudly; None if it drains its input."""
    instance = trial.instances.start(application, launch=Launch(may_refuse=True))
    stopped = application.running["a"]
    if instance is not None:
        trial.recorder.wait(
            trial.rig.progress_s, lambda: instance.is_over or trial.monitor.is_drained(application)
        )
        if not instance.failed:
            trial.monitor.tick(application)
            return None
        trial.instances.gave_up(application, "a")
    else:
        trial.instances.let_go(application, "a")
    return stopped


def files_of(folder: Folder) -> set[tuple[str, int, int]]:
    """Return name, size (bytes) and time of change (ns) of all files under a folder."""
    return {file[:3] for file in folder.files() if not file.name.endswith(CHECKSUM)}


def _takes(file: int) -> bool:
    """Return whether one more piece has room, or a part of it."""
    try:
        return os.write(file, bytes(PIECE_BYTES)) > 0
    except OSError:
        return False


def wipe(
    trial: Trial, application: Application, name: str = "a", *, may_be_empty: bool = False
) -> None:
    """Delete the disk of an instance, and mark its files and bytes.

    Raises:
        MarkMissed: The disk is empty, though the manifest says that the design keeps local state.
    """
    folder = application.disks / name
    files = folder.files()
    size = sum(file.size_bytes for file in files)
    folder.remove()
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
    application.disks.copy_to(application.kept)


def _is_rewritten(application: Application, name: str, size_bytes: int) -> bool:
    """Return whether a file has another content than its copy, and as many bytes.

    A checkpoint may be one small file, of which a few digits change. Large files are not read.
    """
    if size_bytes > MOST_COMPARED_BYTES:
        return False
    now, then = (folder.read(name, size_bytes) for folder in (application.disks, application.kept))
    return now != then


def set_back(trial: Trial, application: Application) -> None:
    """Replace the disks of an application by their copy; mark how many files changed.

    Raises:
        MarkMissed: No file changed, though the manifest says that the design keeps local state.
    """
    now, then = (
        {file[:2] for file in files_of(folder)} for folder in (application.disks, application.kept)
    )
    changed = len(now ^ then) + sum(_is_rewritten(application, *file) for file in now & then)
    if not changed and trial.manifest.local_state:
        raise MarkMissed(
            f"{trial.manifest.name} keeps local state by its manifest, and nothing changed on its "
            "disks"
        )
    application.disks.remove()
    application.kept.copy_to(application.disks)
    trial.mark(
        Happening.DISK_SET_BACK,
        files_before=len(then),
        changed=changed,
        local_state=trial.manifest.local_state,
    )
