"""The programs: the dataflows on which the guarantees are stated, for any engine."""

from upheld.programs.batcher import BATCHER
from upheld.programs.branches import BRANCHES
from upheld.programs.contract import (
    DEAD_LETTERS,
    GONE,
    NOTHING,
    Diagnose,
    Diagnosis,
    Merge,
    Place,
    Program,
    Progress,
    State,
    States,
    Unreadable,
    Value,
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
    "Place",
    "Program",
    "Progress",
    "State",
    "States",
    "Unreadable",
    "Value",
]
