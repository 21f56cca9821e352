"""The programs: engine-neutral dataflows that the guarantees are stated on, one file each."""

from streamgate.programs.batcher import BATCHER
from streamgate.programs.branches import BRANCHES
from streamgate.programs.contract import (
    DEAD_LETTERS,
    GONE,
    NOTHING,
    Diagnose,
    Diagnosis,
    Merge,
    Program,
    State,
    States,
    Unreadable,
)
from streamgate.programs.joins import CLIENTS, HOLDINGS, TICKERS
from streamgate.programs.ledger import LEDGER
from streamgate.programs.pulse import PULSE
from streamgate.programs.relay import RELAY

PROGRAMS: dict[str, Program] = {
    program.name: program for program in (RELAY, LEDGER, BRANCHES, BATCHER, CLIENTS, TICKERS, HOLDINGS, PULSE)
}

__all__ = [
    "DEAD_LETTERS",
    "GONE",
    "NOTHING",
    "PROGRAMS",
    "Diagnose",
    "Diagnosis",
    "Merge",
    "Program",
    "State",
    "States",
    "Unreadable",
]
