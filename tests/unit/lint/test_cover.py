from dataclasses import replace

import pytest

from upheld.lint import shipped_wrong
from upheld.lint.cover import alternates, breaches, core_demands, quick_demands
from upheld.protocol.manifest import load
from upheld.spec import catalogue, selection
from upheld.spec.catalogue import Catalogue
from upheld.spec.gherkin import Row

FOUND = catalogue.load()


def changed(depths: dict[str, str]) -> Catalogue:
    """Return the shipped catalogue with other depths for some rows."""

    def at_its_depth(row: Row) -> Row:
        depth = depths.get(row.id)
        return replace(row, tags=row.tags - {f"@{row.depth}"} | {f"@{depth}"}) if depth else row

    scenarios = [
        replace(scenario, rows=tuple(at_its_depth(row) for row in scenario.rows))
        for scenario in FOUND.scenarios
    ]
    return replace(FOUND, scenarios=tuple(scenarios))


def rows_of(guarantee: str) -> list[Row]:
    """Return the rows of a guarantee."""
    return [
        row
        for scenario in FOUND.scenarios
        if scenario.guarantee == guarantee
        for row in scenario.rows
    ]


def test_the_features_meet_every_demand() -> None:
    """The shipped features leave nothing undemanded."""
    assert breaches(FOUND, shipped_wrong()) == []


@pytest.mark.parametrize(
    ("guarantee", "breach"),
    [
        ("G22", "core: G22 has a row on relay"),
        ("G55", "core: the check noticed is called"),
        ("G38", "core: the check forgotten is called"),
        ("G56", "core: batcher is struck by a fault of the family clock"),
        ("G56", "core: mode exactly_once meets a fault of the family clock"),
        ("G38", "quick: G38 has a row"),
    ],
)
def test_a_demand_that_nothing_meets_is_named(guarantee: str, breach: str) -> None:
    """Each demand is named that only a missing guarantee's rows meet at a depth."""
    found = changed({row.id: "full" for row in rows_of(guarantee) if "@soak" not in row.tags})

    assert any(named.startswith(breach) for named in breaches(found, []))


def test_a_wrong_design_that_core_does_not_catch() -> None:
    """Its rows are in no depth below full: it is named, and so is its control."""
    design = load("broken/reads_uncommitted")
    assert design.sin
    scenarios = {
        name.partition("[")[0] for name in (*design.sin.scenarios, design.sin.control or "")
    }
    found = changed({row.id: "full" for name in scenarios for row in FOUND.by_id[name].rows})

    named = breaches(found, [design])

    assert "core: broken/reads_uncommitted is caught by a row of its [sin]" in named
    assert "core: the control of broken/reads_uncommitted is a row of core" in named


def test_a_row_that_stands_in_for_another_has_its_depth() -> None:
    """A design that has one mode of two is judged as deep as one that has both."""
    usual, (other, *_) = next(iter(alternates(FOUND).items()))

    named = breaches(changed({other: "full", usual: "core"}), [])

    assert f"{other} has the depth of {usual}, which it stands in for" in named


def test_each_row_stands_in_for_one_at_most() -> None:
    """Each row that a complete design does not promise replaces one that it does.

    Rows on two releases are promised of two designs alone.
    """
    rows = selection.rows(FOUND)
    promised = {row.id for row in rows if selection.RELEASES_TAG not in row.tags}
    others = [other for each in alternates(FOUND).values() for other in each]

    assert len(others) == len(set(others))
    assert set(others) | {row.id for row in selection.promised(FOUND, load("plain"))} == promised


def test_every_demand_can_be_met() -> None:
    """A demand names rows that there are."""
    demands = [*core_demands(FOUND), *quick_demands(FOUND)]

    assert all(demand.rows for demand in demands)
    assert len({demand.name for demand in demands}) == len(demands)
