"""The checks of `batcher` on hand-written histories.

A customer's letters are its events, in order.
"""

import json

import pytest
from histories import Story
from hypothesis import given
from hypothesis import strategies as st
from stories import BOTH_MODES, names

from upheld.history.events import Instance
from upheld.verdicts import Inconclusive


def batcher(mode: str = "exactly_once", threshold: int = 3, interval_ms: int = 1000) -> Story:
    """Tell a batcher that was started; batches of three, or a second."""
    story = Story("batcher", mode, threshold=threshold, interval_ms=interval_ms)
    story.start()
    return story


class TestRelation:
    """One state an event."""

    @BOTH_MODES
    def test_every_event_once(self, mode: str) -> None:
        """Batches of any size show the events in order; nulls and aborted events are none."""
        story = batcher(mode)
        story.visits("ada", "abcd")
        story.visit("ada", None)
        story.visit("ada", "x", visible=False)
        story.visits("bob", "e")
        story.out("ada", "abc")
        story.out("bob", "e")
        story.out("ada", "d")

        assert story.found("relation") == []

    @pytest.mark.parametrize(
        ("batches", "anomalies"),
        [
            (["ab"], ["lost"]),
            (["ab", "bc"], ["duplicated"]),
            (["ab", "ac"], ["duplicated", "reordered"]),
            (["ba", "c"], ["reordered"]),
            (["abc", "x"], ["uncommitted-visible"]),
            (["abc", "z"], ["phantom"]),
            (["abc", "e"], ["phantom"]),
        ],
    )
    def test_what_is_wrong(self, batches: list[str], anomalies: list[str]) -> None:
        """Missing, repeated, out of order, aborted, made up, or of somebody else."""
        story = batcher()
        story.visits("ada", "abc")
        story.visit("ada", "x", visible=False)
        story.visits("bob", "e")
        story.out("bob", "e")
        for batch in batches:
            story.out("ada", batch)

        assert set(names(story.found("relation"))) == set(anomalies)

    @pytest.mark.parametrize(
        "value",
        [
            None,
            b"{",
            b"[]",
            json.dumps({"customerId": "ada", "events": []}).encode(),
            json.dumps(
                {"customerId": "bob", "events": [{"visitorId": "a", "action": "click"}]}
            ).encode(),
            json.dumps({"customerId": "ada", "events": [{"visitorId": "a"}]}).encode(),
            json.dumps(
                {"customerId": "ada", "events": [{"visitorId": 1, "action": "click"}]}
            ).encode(),
            json.dumps(
                {"customerId": "ada", "n": 1, "events": [{"visitorId": "a", "action": "click"}]}
            ).encode(),
        ],
    )
    def test_no_batch_of_the_contract(self, value: bytes | None) -> None:
        """An output that cannot be read as a batch is phantom, and no traceback."""
        story = batcher()
        story.visits("ada", "a")
        story.out("ada", "a")
        story.out("ada", "a", value=value)

        assert names(story.found("relation")) == ["phantom"]

    def test_beside_an_event_that_cannot_be_read(self) -> None:
        """A wrong batch has its name, whatever else lies in the input."""
        story = batcher()
        story.visits("ada", "a")
        story.visit("ada", "b", value=b"{")
        story.out("ada", "az")

        assert names(story.found("relation")) == ["phantom"]

    def test_at_least_once_repeats_after_a_crash(self) -> None:
        """A step back for each new start, and none before."""
        story = batcher("at_least_once")
        story.visits("ada", "abcd")
        story.out("ada", "abc")
        story.kill()
        story.start()
        story.out("ada", "bc")
        story.out("ada", "d")
        assert story.found("relation") == []

        story.out("ada", "d")
        story.out("ada", "cd")
        assert set(names(story.found("relation"))) == {"reordered"}

    @BOTH_MODES
    def test_what_is_committed_may_wait(self, mode: str) -> None:
        """Offsets may be ahead of batches; batches ahead of offsets are for at_least_once."""
        story = batcher(mode)
        story.visits("ada", "abcd")
        story.out("ada", "abc")
        story.settled(4)
        assert story.found("fold") == []

        story.settled(2)
        assert names(story.found("fold")) == (["ahead-of-commit"] if mode == "exactly_once" else [])


class TestFilled:
    """At the pause just the full batches are out."""

    def test_full_ones_alone(self) -> None:
        """Two of three each, and one event that waits."""
        story = batcher()
        story.visits("ada", "abcdefg")
        story.visits("bob", "xy")
        story.out("ada", "abc")
        story.out("ada", "def")
        story.rests()

        assert story.found("filled") == []

    @pytest.mark.parametrize(
        ("batches", "anomalies"),
        [
            (["abc"], ["late"]),
            ([], ["late"]),
            (["abc", "def", "g"], ["early"]),
            (["a", "bc", "def"], ["early", "early"]),
        ],
    )
    def test_too_few_or_too_many(self, batches: list[str], anomalies: list[str]) -> None:
        """A full one that waits is late; one that is not full is early."""
        story = batcher()
        story.visits("ada", "abcdefg")
        for batch in batches:
            story.out("ada", batch)
        story.rests()

        assert names(story.found("filled")) == anomalies

    def test_others_took_the_cores(self) -> None:
        """A late batch on a machine in use by others proves nothing, here too."""
        story = batcher()
        story.visits("ada", "abc")
        story.rests(others=0.5)

        with pytest.raises(Inconclusive, match="50% of the cores"):
            story.judged("filled")


class TestInTime:
    """No event waits longer than the tolerance, which is 2100 ms here.

    The wait begins at the later of append and ready.
    """

    @pytest.mark.parametrize(("at_ms", "anomalies"), [(2600, []), (2601, ["late"])])
    def test_from_the_append(self, at_ms: int, anomalies: list[str]) -> None:
        """The bound holds for every event, not for the last alone."""
        story = batcher()
        story.visits("ada", "a", seen_ms=500)
        story.visits("ada", "b", seen_ms=1500)
        story.out("ada", "ab", at_ms)
        story.rests(looked_ms=2700)

        assert names(story.found("in-time")) == anomalies

    @pytest.mark.parametrize(("ready_ms", "anomalies"), [(899, ["late"]), (900, [])])
    def test_from_ready(self, ready_ms: int, anomalies: list[str]) -> None:
        """While nothing runs nothing is promised."""
        story = batcher()
        story.visits("ada", "a", seen_ms=100)
        story.history.add(Instance(at_ms=ready_ms, application="app", name="a", event="ready"))
        story.out("ada", "a", 3000)
        story.rests(looked_ms=3100)

        assert names(story.found("in-time")) == anomalies

    @pytest.mark.parametrize(("looked_ms", "anomalies"), [(2599, []), (2600, ["late"])])
    def test_never_seen(self, looked_ms: int, anomalies: list[str]) -> None:
        """An event that is not out when its time is over is late.

        Before that nothing is known.
        """
        story = batcher()
        story.visits("ada", "a", seen_ms=500)
        story.rests(looked_ms=looked_ms)

        assert names(story.found("in-time")) == anomalies

    def test_the_first_sight_counts(self) -> None:
        """A repeat under at_least_once is no delay."""
        story = batcher("at_least_once")
        story.visits("ada", "a", seen_ms=0)
        story.out("ada", "a", 1000)
        story.kill()
        story.start()
        story.out("ada", "a", 5000)
        story.rests(looked_ms=5000)

        assert story.found("in-time") == []


class TestBounded:
    """Never over the threshold, never early."""

    @pytest.mark.parametrize(
        ("batches", "anomalies"),
        [
            ([("abc", 0), ("def", 0), ("g", 10)], []),  # full ones have no clock
            ([("abcd", 0)], ["late"]),
            ([("ab", 0), ("cd", 750)], []),
            ([("ab", 0), ("cd", 749)], ["early"]),
            (
                [("ab", 0), ("cde", 10), ("f", 20)],
                [],
            ),  # a full one between two starts the wait anew
        ],
    )
    def test_sizes_and_distances(
        self, batches: list[tuple[str, int]], anomalies: list[str]
    ) -> None:
        """A quarter of the interval is left to jitter."""
        story = batcher()
        story.visits("ada", "abcdefg")
        for batch, at_ms in batches:
            story.out("ada", batch, at_ms)

        assert names(story.found("bounded")) == anomalies

    @pytest.mark.parametrize(("appended_ms", "anomalies"), [(250, []), (251, ["early"])])
    def test_a_clock_of_its_own(self, appended_ms: int, anomalies: list[str]) -> None:
        """An event that has waited for the interval may go.

        It may, however new the batch before it is: that batch may have come late.
        """
        story = batcher()
        story.visits("ada", "a")
        story.out("ada", "a", 600)
        story.visits("ada", "b", seen_ms=appended_ms)
        story.out("ada", "b", 1000)

        assert names(story.found("bounded")) == anomalies

    def test_a_close_may_follow_at_once(self) -> None:
        """Neither the close of an instance nor its next life waits for a clock."""
        story = batcher()
        story.visits("ada", "abcd")
        story.out("ada", "a", 0)
        story.history.add(Instance(at_ms=1, application="app", name="a", event="stopped"))
        story.out("ada", "b", 1)
        story.start()
        story.out("ada", "c", 2)

        assert story.found("bounded") == []

    def test_customers_apart(self) -> None:
        """Two customers' batches have nothing to do with each other."""
        story = batcher()
        story.visits("ada", "a")
        story.visits("bob", "b")
        story.out("ada", "a", 0)
        story.out("bob", "b", 1)

        assert story.found("bounded") == []


@given(data=st.data(), threshold=st.integers(1, 4), count=st.integers(1, 12))
def test_a_legal_batcher_is_never_caught(data: st.DataObject, threshold: int, count: int) -> None:
    """Each legal use of threshold and clock passes every check.

    If an event is added, missing or moved, a check finds it.
    """
    story = batcher("exactly_once", threshold)
    letters = "abcdefghijkl"[:count]
    story.visits("ada", letters)
    now_ms = 0
    left = letters
    outs = []
    while left:
        size = data.draw(st.integers(1, min(threshold, len(left))))
        now_ms += 1 if size == threshold else 1000
        outs.append((left[:size], now_ms))
        left = left[size:]
    sin = data.draw(st.sampled_from(["none", "drop", "repeat", "merge"]))
    if sin == "drop":
        outs.pop(data.draw(st.integers(0, len(outs) - 1)))
    elif sin == "repeat":
        outs.insert(0, outs[data.draw(st.integers(0, len(outs) - 1))])
    elif sin == "merge":
        outs = [(letters + "a", now_ms)]
    for batch, at_ms in outs:
        story.out("ada", batch, at_ms)

    found = story.found("relation") + story.found("bounded")

    assert bool(found) == (sin != "none")
