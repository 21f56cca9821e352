"""A row says what its verdict rests on, and `--require` asks for more."""

from typing import Any

import pytest

from upheld.report import RowResult, card
from upheld.report.oracles import catches, resting, rests_on, weaker
from upheld.spec.power import Power
from upheld.verdicts import Verdict


def row(name: str = "G22.a", **fields: Any) -> RowResult:
    """Return a row, upheld unless it says otherwise."""
    usual = {"verdict": Verdict.UPHELD, "guarantee": "G22", "name": "n", "seconds": 1}
    return RowResult(design="orders", id=name, **(usual | fields))


MODEL = {"oracle": "model", "rests_on": ["relation", "order", "prefix"]}
WEAK = {"oracle": "itself", "rests_on": ["relation", "order"], "lacks": ["prefix"]}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (MODEL, "model: relation, order, prefix"),
        (WEAK, "itself: relation, order; no prefix"),
        ({"oracle": "itself", "lacks": ["relation", "order"]}, "itself: no relation, no order"),
        (MODEL | {"oracle": "program"}, ""),
        ({"oracle": "itself"}, ""),
        ({}, ""),
    ],
)
def test_what_a_row_rests_on(fields: dict[str, Any], said: str) -> None:
    """The oracle is named with what was asked of it, unless it is that of a program."""
    assert rests_on(row(**fields)) == said


def test_a_card_says_it() -> None:
    """A reader of a red row sees who says what is right."""
    violated = row(verdict=Verdict.VIOLATED, **WEAK)

    assert "\n  rests on  itself: relation, order; no prefix\n" in card(violated, "again")


def test_a_card_says_how_much_the_row_catches() -> None:
    """The power stands there unless the verdict rests on a program's model."""
    power = Power(caught=7, judged=41)

    assert catches(row(**WEAK, power=power)) == "the row catches 7 of 41 wrong designs"
    assert catches(row(**WEAK)) == catches(row(oracle="program", power=power)) == ""
    assert "\n            the row catches 7 of 41 wrong designs\n" in card(
        row(verdict=Verdict.VIOLATED, **WEAK, power=power), "again"
    )


def test_rows_are_counted_by_what_they_rest_on() -> None:
    """A line below the table counts them; without such rows there is none."""
    rows = [row(**MODEL), row(**MODEL), row(**WEAK), row()]

    assert list(resting(rows)) == [
        "verdicts rest: 2 on model: relation, order, prefix; 1 on itself: relation, order; no "
        "prefix"
    ]
    assert list(resting([row()])) == []


def test_what_is_required_and_lacks_breaks_a_limit() -> None:
    """Each row that asked for it in vain is named once."""
    rows = [row(**MODEL), row("G22.b", **WEAK), row("G22.b", **WEAK), row("G21.c")]

    assert weaker(rows, ["prefix"]) == [
        "--require prefix: orders is judged by itself without it: G22.b"
    ]
    assert weaker(rows, ["order"]) == []
    assert weaker(rows, []) == []
