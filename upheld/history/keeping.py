"""Histories on disk, after their rows: as they are, compressed, or gone.

A history of a row that is upheld is megabytes that few will read. Level 1 of gzip makes a seventh
of them, in a hundredth of the time that the row took.
"""

import gzip
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, get_args

from upheld.masking import private

# `failed` is those of rows that failed alone, and `all` is all as they are. `packed` keeps all, and
# compresses those of rows that did not fail.
Keep = Literal["packed", "failed", "all"]
KEEPS: Final[tuple[Keep, ...]] = get_args(Keep)
SUFFIX: Final = ".gz"
LEVEL: Final = 1  # level 6 takes twice the time for a tenth less


def kept(path: Path, keep: Keep, *, is_failed: bool) -> Path | None:
    """Return where the closed history of a row is kept; None if it is not.

    No other form of it, by an older run, is left. If there is no room for a compressed one,
    the history stays as it is.
    """
    packed = path.with_name(path.name + SUFFIX)
    if is_failed or keep == "all":
        packed.unlink(missing_ok=True)
        return path
    if keep == "failed":
        packed.unlink(missing_ok=True)
        path.unlink(missing_ok=True)
        return None
    try:
        _pack(path, packed)
    except OSError:
        with suppress(OSError):
            packed.unlink(missing_ok=True)
        return path
    path.unlink()
    return packed


def _pack(path: Path, packed: Path) -> None:
    """Compress a file; nobody else may read what comes of it, and no time stands in it."""
    packed.unlink(missing_ok=True)
    with (
        path.open("rb") as opened,
        open(packed, "xb", opener=private) as file,
        gzip.GzipFile(path.name, "wb", LEVEL, file, mtime=0) as to,
    ):
        shutil.copyfileobj(opened, to)
