"""A run hints at what a design may want to declare."""

import pytest

from upheld.report import RowResult, hints
from upheld.spec.kills import Judged, Kill, Kills
from upheld.verdicts import Verdict

CAUGHT = Judged(killed={"G1.a": Kill(anomaly="lost", seconds=1)})
KNOWN = Kills(designs={"broken/one": CAUGHT, "broken/two": Judged()})


def row(design: str, row_id: str, due: int = 0, shown: int = 0) -> RowResult:
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

    (hint,) = hints(rows, KNOWN)

    assert hint.startswith("mine showed every state in 1 of 2 rows, and 5016 of 8813 in G2.b.")
    assert 'emits = "every-state"' in hint


@pytest.mark.parametrize(("due", "shown"), [(512, 511), (49, 49), (0, 0)])
def test_a_design_that_skips_states(due: int, shown: int) -> None:
    """Nothing is said of a design that skips a state, or that few states were due of."""
    assert list(hints([row("mine", "G1.a", due, shown)], KNOWN)) == []


def test_rows_that_catch_nothing_say_little() -> None:
    """One design upheld no row with a kill, and another one upheld one."""
    (hint,) = hints([row("mine", "G2.b"), row("it", "G1.a"), row("it", "G2.b")], KNOWN)

    assert hint.startswith("no row that mine upheld is known to catch one of 2 wrong designs")


def test_rows_with_one_warning_are_named_together() -> None:
    """The first three are named, and the others counted."""
    rows = [row("mine", "G1.a") for _ in range(5)]
    for each in rows:
        each.warnings = ["no record was set aside"]

    (hint,) = hints(rows, KNOWN)

    assert hint == "mine G1.a, mine G1.a, mine G1.a and 2 others: no record was set aside"


@pytest.mark.parametrize(("days", "said"), [(14, "14 more days"), (1, "1 more day"), (15, "")])
def test_a_waiver_that_ends_soon_is_said(days: int, said: str) -> None:
    """A fortnight before, whoever owns it has to know; the repetitions say it once."""
    rows = [row("mine", "G1.a"), row("mine", "G1.a")]
    for each in rows:
        each.known = "slow link (owner ann)"
        each.known_days = days

    expected = [f"mine G1.a is a known failure for {said}: slow link (owner ann)"] if said else []
    assert list(hints(rows, KNOWN)) == expected


@pytest.mark.parametrize(
    ("verdict", "so"),
    [
        (Verdict.UPHELD, "the row is upheld, so that its line can go"),
        (Verdict.VIOLATED, "it counts as any other row"),
    ],
)
def test_a_waiver_that_counts_no_more_is_said(verdict: Verdict, so: str) -> None:
    """A reader learns why the row is no known failure, and what follows."""
    judged = row("mine", "G1.a")
    judged.verdict = verdict
    judged.lapsed = "a known failure until 2026-12-24 alone: slow link"

    assert f"mine G1.a was {judged.lapsed}; {so}" in list(hints([judged], KNOWN))
