"""A guarantees.toml."""

from typing import Final

from fuzzing import ROOT, contents, file_of, refused
from upheld.spec.catalogue import load

SEEDS: Final = (
    contents([ROOT / "features" / "guarantees.toml"])[0][:4_000],
    b'[sources]\n"a.md" = "A"\n[tags]\nflush = "x"\n[G1]\npromise = "p"\nfamily = "flush"\n'
    b'programs = ["relay"]\nstrength = "beyond"\nstatus = "specified"\nsince = "1.0.0"\n'
    b'rows_since = { "G1.x[relay-exactly_once]" = "1.1.0" }\n',
)
WORDS: Final = (
    *(b"[sources]", b"[tags]", b"[G1]", b"[SLA]", b"promise", b"family", b"programs", b"parts"),
    *(b"source", b"section", b"strength", b"status", b"why", b"since", b"rows_since", b'"all"'),
    *(b"1.0.0", b"documented", b"beyond", b"specified", b"untested", b"=", b"[[", b"{", b"}"),
)


def guarantees(data: bytes) -> None:
    """Load a catalogue without features."""
    path = file_of("guarantees.toml", data)
    with refused():
        load(path.parent)
