"""The file of `--rows`."""

from typing import Final

from fuzzing import file_of, refused
from upheld.protocol.manifest import load as load_design
from upheld.spec.catalogue import load
from upheld.spec.selection import promised, rows_of_the_file

_CATALOGUE: Final = load()
_PLAIN: Final = load_design("plain")
_IDS: Final = [row.id.encode() for row in promised(_CATALOGUE, _PLAIN)[:20]]
SEEDS: Final = (b"".join(b"plain " + row + b"\n" for row in _IDS), b"\r\n\r\nplain G1\r\n")
WORDS: Final = (b"plain ", b"spark ", b"\n", b"\r\n", b"\0", b"\xef\xbb\xbf", *_IDS)


def rows(data: bytes) -> None:
    """Choose the rows that the file names."""
    path = file_of("rows.txt", data)
    with refused():
        rows_of_the_file(path, _CATALOGUE, [_PLAIN])
