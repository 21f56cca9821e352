"""The drawings of rows, which a report names and its folder holds."""

from pathlib import Path
from typing import Final

from upheld.reading import read_bytes
from upheld.report.folder import named_in
from upheld.report.model import RowResult

LARGEST_BYTES: Final = 60_000


def drawing(folder: Path, row: RowResult) -> bytes:
    """Return the drawing of a row as SVG; empty if it is large, or not in the folder."""
    path = named_in(folder, row.picture)
    return read_bytes(path) if path and path.stat().st_size <= LARGEST_BYTES else b""
