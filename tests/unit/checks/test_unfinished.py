"""A log that does not go on shows faults or a key that waits."""

import pytest
from histories import Story
from joins_in_words import told
from stories import BOTH_MODES, balances, names, relayed, two_signals

from upheld.checks.unfinished import behind, stuck_at, worse
from upheld.history.events import Offsets

NOTHING_COMMITTED: Offsets = {}


def faults(story: Story, committed: Offsets | None = None) -> list[str]:
    """Return the names of what is wrong already."""
    found = worse(story.history, "app", committed)
    return names([(a.name, a.key, a.source) for a in found])


@BOTH_MODES
@pytest.mark.parametrize("outputs", ["", "0", "01", "02"])
def test_nothing_yet(mode: str, outputs: str) -> None:
    """A ledger that has not shown its last state may still show it."""
    assert faults(balances(mode, outputs), NOTHING_COMMITTED) == []


@pytest.mark.parametrize(
    ("story", "expected"),
    [
        (balances("exactly_once", "00"), "duplicated"),
        (balances("exactly_once", "10"), "reordered"),
        (balances("at_least_once", "10"), "reordered"),
        (relayed("exactly_once", "02"), "lost"),
        (told("holdings", "1A .A .A 2A", "0+2 0+1"), "stale-overwrite"),
        (told("holdings", "1A .A -1 2A", "-0 0+1"), "resurrected"),
        (told("holdings", "1A .A .B 2A", "0+2"), "phantom"),
    ],
)
def test_the_order_is_wrong(story: Story, expected: str) -> None:
    """No later output mends the order of those that are visible."""
    assert faults(story) == [expected]


def test_a_row_goes_back() -> None:
    """A row that holds less than the one before is wrong, and one that waits is not."""
    story, motor, gripper = two_signals()
    story.pulse("ada", motor)
    assert faults(story) == []
    story.pulse("ada", gripper)
    assert faults(story) == ["reordered"]


@pytest.mark.parametrize(("below", "found"), [(0, []), (1, []), (2, ["lost"]), (4, ["lost"])])
def test_what_is_committed_and_not_visible(below: int, found: list[str]) -> None:
    """An output whose input is committed does not come any more."""
    story = balances("exactly_once", "0")

    assert faults(story, {"app-entries-0": below}) == found
    assert faults(story, None) == []


def test_a_missing_tombstone() -> None:
    """A row that went, and whose offset is committed, has lost its tombstone."""
    story = told("holdings", "1A .A -1 2A", "0+1")
    committed = {"app-positions-0": 3, "app-tickers-0": 1}

    found = worse(story.history, "app", committed)

    assert [(a.name, a.key) for a in found] == [("lost", "1"), ("lost", "2")]
    assert found[0].expected == "a tombstone"


def test_a_key_that_waits() -> None:
    """The anomaly has the key, its input, what is due and what is visible."""
    anomaly = stuck_at(balances("exactly_once", "01").history, "app", "it rests")

    assert anomaly
    assert (anomaly.name, anomaly.key, anomaly.source) == ("stuck", "ada", "app-entries-0@3")
    assert anomaly.text.startswith("it rests; ada shows 11, 2, ")
    assert anomaly.text.endswith(" is due")
    assert (anomaly.expected or "").startswith("1111, 4, ")


def test_nothing_is_visible() -> None:
    """A key without any output shows nothing."""
    anomaly = stuck_at(balances("at_least_once", "").history, "app", "it rests")

    assert anomaly
    assert anomaly.text.startswith("it rests; ada shows nothing, and 1111, 4, ")


def test_every_last_state_is_visible() -> None:
    """Then no key waits."""
    assert stuck_at(balances("at_least_once", "03").history, "app", "it rests") is None


def test_offsets_that_are_behind() -> None:
    """Each partition is named with its committed offset and its visible end."""
    ends = {"in-0": 5, "in-1": 7, "in-2": 2}

    assert behind({"in-0": 5, "in-1": 6}, ends) == "in-1 at 6 of 7, in-2 at 0 of 2"
    assert behind(ends, ends) == ""
