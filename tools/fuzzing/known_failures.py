"""A file of known failures, which a design.toml names."""

from typing import Final

from fuzzing import file_of, refused
from upheld.protocol.manifest import load

_MANIFEST: Final = (
    b'name = "mine"\nversion = "1"\ncommand = ["true"]\nprograms = ["relay"]\n'
    b'modes = ["at_least_once"]\nknown_failures = "known.csv"\n'
)
SEEDS: Final = (
    b"# known\n\nG22.crash, slow, and old, https://example.org/1\nG1.x, y, z\n",
    b"G1.x, y, z, owner=ann, until=2026-12-24, fixed_in=v1.4\n",
)
WORDS: Final = (
    *(b"owner=", b"until=", b"fixed_in=", b"2026-13-01", b"99999999999", b"="),
    b",",
    b"#",
    b"\n",
    b"\r\n",
    b"G22.crash",
    b"\xef\xbb\xbf",
    "\u2028".encode(),
    b"\0",
)


def known_failures(data: bytes) -> None:
    """Load a manifest that names the file."""
    file_of("known.csv", data)
    path = file_of("design.toml", _MANIFEST)
    with refused():
        load(str(path))
