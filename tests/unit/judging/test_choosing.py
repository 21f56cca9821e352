"""Of each guarantee that an application is judged on, every depth has a row."""

from collections.abc import Collection, Iterable
from pathlib import Path
from types import SimpleNamespace

import pytest

from upheld.judging import choosing
from upheld.judging.choosing import chosen_rows
from upheld.judging.prerequisites import lacking
from upheld.protocol.manifest import load
from upheld.spec import selection
from upheld.spec.catalogue import load as catalogue
from upheld.spec.depths import Depth, Share
from upheld.spec.fault_families import families
from upheld.spec.gherkin import Row
from upheld.spec.selection import Request

FOUND = catalogue()
EXAMPLES = Path(__file__).parents[3] / "examples"
ORDERS = load(str(EXAMPLES / "orders"))
STREAMS = load(str(EXAMPLES / "streams"))  # which is told its commit interval
PLAIN = load("plain")


def rows(ids: Collection[str]) -> list[Row]:
    """Return the rows of these ids."""
    return [row for row in selection.rows(FOUND) if row.id in ids]


def guarantees(ids: Iterable[str]) -> set[str]:
    """Return the guarantees of these rows."""
    return {FOUND.by_row[each].guarantee for each in ids}


def judged(depth: Depth) -> set[str]:
    """Return the rows of a depth on which the orders are judged."""
    ids = chosen_rows(Request(depth=depth), FOUND, [ORDERS])[ORDERS.name]
    return {row.id for row in rows(ids) if not any(lacking(row, ORDERS))}


@pytest.mark.parametrize("depth", ["quick", "core"])
def test_no_guarantee_is_left_out(depth: Depth) -> None:
    """It has a row at each depth, if it has one at all."""
    everything = judged("full")

    assert guarantees(judged(depth)) == guarantees(everything)
    assert judged(depth) <= everything


def test_the_rows_of_the_depth_stay() -> None:
    """Those that are unsupported say why; what stands in comes beside them."""
    asked = Request(depth="quick")
    usual = selection.chosen_rows(asked, FOUND, [ORDERS])[ORDERS.name]
    chosen = chosen_rows(asked, FOUND, [ORDERS])[ORDERS.name]

    assert usual < chosen
    assert len(guarantees(chosen - usual)) == len(chosen - usual)
    lacked = {row.id for row in rows(usual) if any(lacking(row, ORDERS))}
    assert guarantees(chosen - usual).isdisjoint(guarantees(usual - lacked))


def test_a_row_that_a_fault_strikes_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guarantee has one without if no fault strikes its rows, whatever they cost."""
    everything = {row.id: row for row in selection.rows(FOUND)}
    costs = SimpleNamespace(seconds=lambda _, row: float(bool(families(everything[row]))))
    monkeypatch.setattr(choosing.durations, "load", lambda: costs)
    offered = selection.chosen_rows(Request(depth="full"), FOUND, [STREAMS])
    due = {row.id for row in rows(offered[STREAMS.name]) if not any(lacking(row, STREAMS))}
    struck = {row.id for row in rows(due) if families(row)}

    found = set(choosing._stand_ins(FOUND, STREAMS, {STREAMS.name: set()}, offered))

    assert guarantees(struck) & guarantees(due - struck)  # some have both
    assert guarantees(found) == guarantees(due)
    assert guarantees(found - struck).isdisjoint(guarantees(struck))


@pytest.mark.parametrize(
    "asked",
    [
        Request(),
        Request(depth="quick", guarantees=["G22"]),
        Request(depth="core", share=Share(3, 8)),
    ],
)
def test_a_design_with_an_adapter_has_the_rows_of_the_depth(asked: Request) -> None:
    """Nothing stands in for what it does not offer."""
    assert chosen_rows(asked, FOUND, [PLAIN]) == selection.chosen_rows(asked, FOUND, [PLAIN])


def test_what_stands_in_is_asked_for() -> None:
    """It is of the guarantees, the programs and the modes that were named."""
    asked = Request(depth="quick", guarantees=["G1", "G22"], programs=["relay"])
    chosen = chosen_rows(asked, FOUND, [ORDERS])[ORDERS.name]

    assert guarantees(chosen) == {"G22"}
    assert {row.program for row in rows(chosen)} == {"relay"}
