"""The table of verdicts counts the promised rows.

A report of some rows can contradict it.
"""

import re
from collections import Counter

import pytest
from verdicts import (
    DESIGNS,
    FAMILIES,
    README,
    TABLE,
    VERDICTS,
    Place,
    cell,
    cells_in,
    compared,
    counts_in,
    families,
    promised_rows,
)

from upheld.report import RowResult
from upheld.verdicts import Verdict

G1 = Place("G1", "plain")
G2 = Place("G2", "plain")
PROMISED = {G1: {"G1.a", "G1.b", "G1.c"}, G2: {"G2.a"}}
SAID = {G1: "violated 1/3, upheld 2/3", G2: "upheld 1/1"}


def row(name: str, verdict: str) -> RowResult:
    """Return a row of plain that came to a verdict."""
    return RowResult(
        design="plain",
        id=name,
        guarantee=name.partition(".")[0],
        name="x",
        verdict=Verdict(verdict),
        seconds=1,
    )


@pytest.mark.parametrize("design", DESIGNS)
def test_it_counts_what_is_promised(design: str) -> None:
    """A row that came or went is seen here, not minutes later in a run of all rows."""
    cells = cells_in(TABLE.of(VERDICTS))
    counts = {place: len(ids) for place, ids in promised_rows().items() if place.design == design}

    assert {
        place: {int(n) for n in re.findall(r"/(\d+)", cells.get(place, ""))} for place in counts
    } == {place: {count} for place, count in counts.items()}


def test_the_readme_has_the_sum_of_each_family() -> None:
    """Its table is made of the page's, and no family is left out."""
    cells = cells_in(TABLE.of(VERDICTS))

    assert FAMILIES.of(README) == families(cells)


def test_a_cell_is_read_as_it_is_written() -> None:
    """The verdicts of a cell survive being written, the one with a hyphen too."""
    counts = Counter({Verdict.UPHELD: 3, Verdict.HARNESS_ERROR: 1})

    assert cell(counts) == "harness-error 1/4, upheld 3/4"
    assert counts_in(cell(counts)) == counts
    assert counts_in("-") == Counter()


def test_rows_that_fit_a_cell_leave_it_standing() -> None:
    """Some rows of a cell prove it in part, and all of them prove it.

    A cell without a row is named.
    """
    found = compared(SAID, PROMISED, [row("G1.a", "violated"), row("G1.b", "upheld")])

    assert (found.wrong, found.whole, found.partly, found.unseen) == ([], [], [G1], [G2])
    assert found.text().endswith("not compared, because no row was judged: G2 of plain")

    all_of_it = [
        row("G1.a", "upheld"),
        row("G1.b", "upheld"),
        row("G1.c", "violated"),
        row("G2.a", "upheld"),
    ]
    found = compared(SAID, PROMISED, all_of_it)

    assert (found.wrong, found.whole, found.partly, found.unseen) == ([], [G1, G2], [], [])


@pytest.mark.parametrize(
    ("judged", "says"),
    [
        (
            [("G2.a", "violated")],
            "G2 of plain: docs/verdicts.md says upheld 1/1, the run violated 1/1",
        ),
        (
            [("G1.a", "violated"), ("G1.b", "violated")],
            "G1 of plain: docs/verdicts.md says violated 1/3, upheld 2/3, the run",
        ),
        ([("G1.a", "inconclusive")], "the run inconclusive 1/1"),
        ([(f"G1.{name}", "upheld") for name in "abc"], "the run upheld 3/3"),
        ([("G1.d", "upheld")], "G1.d of plain is judged, and not promised"),
    ],
)
def test_a_row_contradicts_a_cell(judged: list[tuple[str, str]], says: str) -> None:
    """A verdict that the cell has not, or has less often, is wrong.

    It is, whatever was left out.
    """
    found = compared(SAID, PROMISED, [row(*each) for each in judged])

    assert len(found.wrong) == 1
    assert says in found.text()


def test_a_cell_that_counts_other_rows_is_wrong() -> None:
    """A cell that counts one more row than was promised is wrong.

    Every promised row was judged then, and none has a verdict too many.
    """
    found = compared({G2: "upheld 2/2"}, {G2: {"G2.a"}}, [row("G2.a", "upheld")])

    assert found.wrong == ["G2 of plain: docs/verdicts.md says upheld 2/2, the run upheld 1/1"]


@pytest.mark.parametrize("verdicts", [("upheld", "violated"), ("violated", "upheld")])
def test_a_row_that_was_judged_twice_counts_once_as_its_worst(verdicts: tuple[str, str]) -> None:
    """The reports of two runs may hold the same row; the green one hides no red one."""
    found = compared(SAID, PROMISED, [row("G2.a", verdict) for verdict in verdicts])

    assert found.wrong == ["G2 of plain: docs/verdicts.md says upheld 1/1, the run violated 1/1"]
