"""A badge shows what became of the rows of a report."""

import pytest
from reports import summary

from upheld.report import RowResult
from upheld.report.badge import COLOURS, badge
from upheld.verdicts import Verdict

UPHELD, VIOLATED = Verdict.UPHELD, Verdict.VIOLATED


def rows(*verdicts: Verdict, known: str | None = None) -> list[RowResult]:
    """Return a row of each verdict."""
    return [
        RowResult(
            design="mine",
            id=f"G1.a[relay-{number}]",
            guarantee="G1",
            name="x",
            verdict=verdict,
            known=known,
            seconds=1,
        )
        for number, verdict in enumerate(verdicts)
    ]


@pytest.mark.parametrize(
    ("verdicts", "message", "colour"),
    [
        ((UPHELD, UPHELD), "2 upheld (core)", "brightgreen"),
        ((UPHELD, VIOLATED), "1 violated, 1 upheld (core)", "red"),
        ((UPHELD, Verdict.INCONCLUSIVE), "1 inconclusive, 1 upheld (core)", "yellow"),
        ((UPHELD, Verdict.UNSUPPORTED), "1 upheld, 1 unsupported (core)", "brightgreen"),
        ((Verdict.UNSUPPORTED,), "1 unsupported (core)", "lightgrey"),
        ((), "nothing judged (core)", "lightgrey"),
    ],
)
def test_the_worst_verdict_gives_the_colour(
    verdicts: tuple[Verdict, ...], message: str, colour: str
) -> None:
    """All verdicts are counted, the worst one first."""
    made = badge(rows(*verdicts), [summary()])

    assert (made["message"], made["color"]) == (message, colour)
    assert (made["schemaVersion"], made["label"]) == (1, "upheld")


def test_a_known_failure_is_no_news() -> None:
    """The badge stays green; a known failure that is upheld at last fails the run."""
    known = rows(VIOLATED, known="https://example.org/1")
    at_last = rows(UPHELD, known="https://example.org/1")

    assert badge([*rows(UPHELD), *known], [summary()])["message"] == "1 upheld (core)"
    assert badge([*rows(UPHELD), *known], [summary()])["color"] == "brightgreen"
    assert badge([*rows(UPHELD), *at_last], [summary()])["color"] == "red"


def test_every_verdict_has_a_colour() -> None:
    """A new verdict needs one too."""
    assert set(COLOURS) == set(Verdict)
