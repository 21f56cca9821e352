"""The programs: engine-neutral dataflows that the guarantees are stated on, one file each."""

from upheld.programs.batcher import BATCHER
from upheld.programs.branches import BRANCHES
from upheld.programs.contract import (
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
from upheld.programs.joins import CLIENTS, HOLDINGS, TICKERS
from upheld.programs.ledger import LEDGER
from upheld.programs.pulse import PULSE
from upheld.programs.relay import RELAY

PROGRAMS: dict[str, Program] = {
    program.name: program
    for program in (RELAY, LEDGER, BRANCHES, PULSE, BATCHER, CLIENTS, TICKERS, HOLDINGS)
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
