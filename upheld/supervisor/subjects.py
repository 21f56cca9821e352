"""The subject of a run: the artefact that is judged, by its digest.

The same artefact has the same digest on every machine.

A file has the SHA-256 of its bytes, as `sha256sum` prints it. A folder has that of its files' names
and digests. A design that names no subject has that of its own folder.
"""

import hashlib
import os
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from upheld.errors import UsageProblem
from upheld.protocol.manifest import Manifest
from upheld.reading import is_file, is_folder, read_toml
from upheld.report.folder import LOCK

PREFIX: Final = "sha256:"
IMAGE: Final = "image:"  # so begins a subject that is the image of a container
UNKNOWN: Final = ""
MOST_FILES: Final = 10_000  # of a folder that no design named
MOST_BYTES: Final = 256 << 20
_CHUNK_BYTES: Final = 1 << 20
_MADE: Final = ("__pycache__", "node_modules")  # folders that are made again wherever they lie
_REPORT: Final = "report.jsonl"  # a folder that holds one is the output of a run
_OUT: Final = "upheld-out"


def subject_of(design: Manifest) -> str:
    """Return the digest of a design's subject.

    If the design names none, and its folder is too large or cannot be read, it is empty.

    Raises:
        UsageProblem: The subject that it names is not there, or cannot be read.
    """
    if design.subject is None:
        with suppress(OSError):
            return _of_its_folder(design)
        return UNKNOWN
    try:
        return PREFIX + _named(design, design.folder / design.subject)
    except OSError as error:
        where = error.filename or design.folder
        raise UsageProblem(
            f"{design.file}: the subject cannot be read: {error.strerror} ({where})."
        ) from None


def _named(design: Manifest, path: Path) -> str:
    """Return the digest of the file or the folder that a design names."""
    if is_file(path):
        return _of_file(path)
    if is_folder(path):
        return _of_files(path, sorted(_files(path)))
    after = ", and `prepare` did not make it" if design.prepare else ""
    raise UsageProblem(
        f"{design.file}: `subject` names {design.subject}, which is no file and no folder{after}."
    )


def _of_its_folder(design: Manifest) -> str:
    """Return the digest of a design's folder; its known failures are no part of it."""
    named = read_toml(design.file).get("known_failures")
    left_out = {design.folder / named} if isinstance(named, str) else set()
    found = list[Path]()
    size = 0
    for path in _files(design.folder, only_written=True):
        size += path.lstat().st_size
        found.append(path)
        if len(found) > MOST_FILES or size > MOST_BYTES:
            return UNKNOWN
    return PREFIX + _of_files(design.folder, sorted(set(found) - left_out))


def _files(folder: Path, *, only_written: bool = False) -> Iterator[Path]:
    """Go through the files of a folder, and the links in it, none of which is followed.

    Args:
        folder: The folder.
        only_written: Whether files are left out that a tool or a run has made.
    """
    for at, folders, files in os.walk(folder):
        if only_written:
            folders[:] = [name for name in folders if _is_written(Path(at, name))]
        links = [name for name in folders if Path(at, name).is_symlink()]
        for name in (*files, *links):
            if not (only_written and name.startswith(".")):
                yield Path(at, name)


def _is_written(folder: Path) -> bool:
    """Return whether a folder holds what a person wrote, as far as its name and files tell."""
    if folder.name.startswith(".") or folder.name in {*_MADE, _OUT}:
        return False
    return not any((folder / name).exists() for name in (_REPORT, LOCK))


def _of_files(folder: Path, files: Collection[Path]) -> str:
    whole = hashlib.sha256()
    for path in files:
        name = os.fsencode(path.relative_to(folder))
        whole.update(b"%d:%s %s\n" % (len(name), name, _of_entry(path).encode()))
    return whole.hexdigest()


def _of_entry(path: Path) -> str:
    """Return what counts of a file in a folder: a link leads where it says, and is not followed."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return f"link {hashlib.sha256(os.fsencode(path.readlink())).hexdigest()}"
    return _of_file(path) if stat.S_ISREG(mode) else "special"


def _of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
