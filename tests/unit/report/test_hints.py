"""A run hints at what a design may want to declare."""

import pytest

from upheld.report import RowResult, hints
from upheld.verdicts import Verdict


def row(design: str, row_id: str, due: int, shown: int) -> RowResult:
    """Return the result of an upheld row in which so many states were due and shown."""
    return RowResult(
        design=design,
        id=row_id,
        guarantee="G1",
        name="",
        verdict=Verdict.UPHELD,
        seconds=1.0,
        states=due,
        states_shown=shown,
    )


def test_a_design_that_shows_every_state() -> None:
    """The hint names the field, and the row that shows the fewest of its states."""
    rows = [row("mine", "G1.a", 512, 512), row("mine", "G2.b", 8813, 5016), row("it", "G1.a", 9, 9)]

    (hint,) = hints(rows)

    assert hint.startswith("mine showed every state in 1 of 2 rows, and 5016 of 8813 in G2.b.")
    assert 'emits = "every-state"' in hint


@pytest.mark.parametrize(("due", "shown"), [(512, 511), (49, 49), (0, 0)])
def test_a_design_that_skips_states(due: int, shown: int) -> None:
    """Nothing is said of a design that skips a state, or that few states were due of."""
    assert list(hints([row("mine", "G1.a", due, shown)])) == []
