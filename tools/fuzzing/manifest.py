"""A design.toml."""

from typing import Final

from fuzzing import ROOT, contents, file_of, folder, refused
from upheld.protocol.manifest import load

KNOWN: Final = "known.csv"
SEEDS: Final = (
    *contents(sorted((ROOT / "impl").glob("*/design.toml"))),
    *contents(sorted((ROOT / "impl" / "broken").glob("*/design.toml"))[:20]),
    b'name = "mine"\nversion = "0.1"\ncommand = ["true", "{python}", "{dir}"]\nprepare = ["true"]\n'
    b'programs = ["relay"]\nmodes = ["at_least_once"]\nknown_failures = "known.csv"\n'
    b'environment = { A = "1" }\nbytes_beside_table = 1.5\n'
    b'[sin]\nscenarios = ["G22.x"]\ncore = []\nanomaly = "lost"\ncontrol = "G1.y"\n',
)
WORDS: Final = (
    *(b"name", b"version", b"command", b"prepare", b"environment", b"programs", b"modes"),
    *(
        b"capabilities",
        b"cannot",
        b"atomic",
        b"local_state",
        b"emits",
        b"bytes_beside_table",
        b"known_failures",
        b"subject",
        b"spec",
    ),
    *(b"extends", b"sin", b"mutant", b"folder", b'"plain"', b"[", b"]", b"[[", b"{", b"}", b"="),
    *(
        b'"""',
        b"'''",
        b"nan",
        b"-inf",
        b"1e999",
        b"-1",
        b"true",
        b"1979-05-27T07:32:00Z",
        b"\\u0000",
    ),
    *(
        b"\\U0010ffff",
        b"~nobody/x",
        b"../..",
        b"/dev/zero",
        b"\r\n",
        b"\xef\xbb\xbf",
        b"a.b.c",
        b'""',
    ),
    *(b"{python}", b"{dir}", b"0x", b"9" * 5_000),
)


def manifest(data: bytes) -> None:
    """Load the manifest."""
    path = file_of("design.toml", data)
    (folder() / KNOWN).write_text("G22.x, slow, https://example.org/1\n")
    with refused():
        load(str(path))
