"""A log that does not go on shows faults or a key that waits."""

import pytest
from histories import EPOCH_MS, Story, begun
from joins_in_words import told
from stories import BOTH_MODES, balances, names, relayed, two_signals

from upheld.checks.unfinished import behind, passed_over, stuck_at, worse
from upheld.history import History
from upheld.history.events import Answered, Application, Contract, Offsets, Record
from upheld.programs.itself import digest_of

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


def priced(shown: str, *, inputs: str = "aab", answers: str = "aab") -> History:
    """Return a history of an application without an adapter.

    Each letter is a record of that key.
    """
    history = History([begun(design="orders", progress="none")])
    history.add(
        Application(
            name="app",
            application_id="app",
            program="relay",
            mode="at_least_once",
            topics={"orders": "in", "costs": "out"},
            parameters={"commit_interval_ms": 100},
            transaction_timeout_ms=3000,
            contract=Contract(name="orders", reads="orders", writes="costs", format="json"),
        )
    )
    read = numbered("in", inputs)
    history.add_all([*read, *numbered("asked", answers), *numbered("out", shown)])
    history.add(
        Answered(
            at_ms=0,
            application="app",
            inputs=digest_of(read),
            outputs="asked",
            topics=("asked",),
            is_ordered=True,
        )
    )
    return history


def numbered(topic: str, keys: str) -> list[Record]:
    """Return a record for each letter, whose value says how often the key came so far."""
    return [
        Record(topic, 0, offset, EPOCH_MS, key.encode(), str(keys[:offset].count(key)).encode())
        for offset, key in enumerate(keys)
    ]


@pytest.mark.parametrize(
    ("shown", "found"), [("aab", []), ("aa", []), ("a", []), ("ab", ["a"]), ("b", ["a"])]
)
def test_what_was_passed_over(shown: str, found: list[str]) -> None:
    """An output is lost if later input of its partition has come out."""
    anomalies = passed_over(priced(shown), "app")

    assert [(each.name, each.key) for each in anomalies] == [("lost", key) for key in found]
    assert all("outputs of later input than in-0@1 are visible" in each.text for each in anomalies)


@pytest.mark.parametrize(
    "history",
    [
        priced("b", answers="ab"),
        priced("", inputs="", answers=""),
        balances("at_least_once", "0").history,
    ],
    ids=["no output has its input", "there is no input", "it has an adapter"],
)
def test_nothing_is_known_to_be_passed_over(history: History) -> None:
    """An output that is missing may still be on its way."""
    assert passed_over(history, "app") == []
