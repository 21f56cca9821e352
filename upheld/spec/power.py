"""The power of rows: of the wrong designs of this project, how many a row catches.

It hangs on the oracle. `kills.json` has what rows catch by the models of programs. Two files of
`tools/itself.py` have what they catch by runs without a fault: `kills_by_itself.json` where all
outputs are compared, and `kills_by_last_value.json` where the last value of each key is.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from upheld.spec import kills
from upheld.spec.kills import Judged, Kills

BY_ITSELF: Final = kills.FILE.with_name("kills_by_itself.json")
BY_LAST_VALUE: Final = kills.FILE.with_name("kills_by_last_value.json")
# The oracles that are runs without a fault, and see no wrong logic that both runs have.
RUNS: Final = frozenset({"itself", "previous"})


class Power(BaseModel):
    """The number of wrong designs that a row, or some rows, catch."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    caught: int = Field(description="how many are caught with this oracle")
    judged: int = Field(description="how many were judged on the row")

    def __str__(self) -> str:
        """Return both numbers: `7 of 41`."""
        return f"{self.caught} of {self.judged}"


@cache
def _matrix(path: Path) -> Kills:
    return kills.load(path)


def power(row: str, oracle: str, *, by_last_value: bool = False) -> Power | None:
    """Return the power of a row with an oracle; None if it was not measured.

    Of runs without a fault, what the row catches by other than its outputs was not measured, and
    does not count.

    Args:
        row: The id of the row.
        oracle: The oracle.
        by_last_value: Whether of a run without a fault only the last value of each key is compared.

    Raises:
        UsageProblem: A matrix is missing or damaged.
    """
    designs = _matrix(kills.FILE).designs
    judged = {name for name, rows in designs.items() if row in {*rows.killed, *rows.upheld}}
    caught = _caught(designs, row)
    if oracle in RUNS:
        measured = _runs(by_last_value=by_last_value)
        if not any(row in judged_there.rows() for judged_there in measured.values()):
            return None
        caught &= _caught(measured, row)
    return Power(caught=len(caught), judged=len(judged)) if judged else None


def power_together(
    rows: Iterable[str], oracle: str, programs: Iterable[str], *, by_last_value: bool = False
) -> Power:
    """Return how many wrong designs of some programs these rows catch together.

    Those count that any row of the programs is known to catch by its model.

    Args:
        rows: The ids of the rows.
        oracle: The oracle.
        programs: The programs.
        by_last_value: Whether of a run without a fault only the last value of each key is compared.

    Raises:
        UsageProblem: A matrix is missing or damaged.
    """
    asked = set(programs)
    designs = _matrix(kills.FILE).designs
    known = {
        name
        for name, judged in designs.items()
        if any(row.partition("[")[2].partition("-")[0] in asked for row in judged.killed)
    }
    found = _runs(by_last_value=by_last_value) if oracle in RUNS else designs
    caught = set[str]().union(*(_caught(found, row) for row in rows))
    return Power(caught=len(known & caught), judged=len(known))


def _runs(*, by_last_value: bool) -> Mapping[str, Judged]:
    """Return what runs without a fault catch."""
    return _matrix(BY_LAST_VALUE if by_last_value else BY_ITSELF).designs


def _caught(designs: Mapping[str, Judged], row: str) -> set[str]:
    """Return the wrong designs that a row catches."""
    return {name for name, judged in designs.items() if row in judged.killed}
