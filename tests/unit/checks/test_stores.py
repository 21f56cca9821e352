"""Checks of what is in a store, on hand-written histories."""

from collections.abc import Callable

import pytest
from histories import Story

from upheld.history.events import Record
from upheld.verdicts import Inconclusive

INTERVAL_MS = 500
Kept = tuple[Story, list[Record]]


def three_states(*, interval_ms: int = INTERVAL_MS) -> Kept:
    """Tell a ledger that keeps its state in a store.

    The account ada gets three entries, and every state of hers is an output.
    """
    story = Story("ledger", "at_least_once", persistence_interval_ms=interval_ms)
    story.start()
    return story, [story.row("ada", n, n, story.entry(ada=1)) for n in (1, 2, 3)]


class TestStored:
    """While the input rests, the store holds every last state in time."""

    def test_the_last_state(self) -> None:
        """It is there; what is stored beside a row's fields is the design's own affair."""
        story, rows = three_states()
        mine = rows[2]._replace(value=(rows[2].value or b"").replace(b"{", b'{"mine": 1, ', 1))
        story.stored(ada=mine)
        story.rests()

        assert story.found("stored") == []

    @pytest.mark.parametrize("kept", [{}, {"ada": 1}])
    def test_it_is_late(self, kept: dict[str, int]) -> None:
        """An older state, or none, is late, and the entry that it lacks is named."""
        story, rows = three_states()
        story.stored(**{account: rows[number] for account, number in kept.items()})
        story.rests()

        assert story.found("stored") == [("late", "ada", "app-entries-0@2")]

    def test_it_is_no_row(self) -> None:
        """A stored value that cannot be read is not the last state, and says why."""
        story, rows = three_states()
        story.stored(ada=rows[2]._replace(value=b"[]"))
        story.rests()
        (anomaly,) = story.judged("stored")

        assert "no row of the contract" in anomaly.text

    def test_others_had_the_cores(self) -> None:
        """A late state proves nothing while others took the cores."""
        story, rows = three_states()
        story.stored(ada=rows[0])
        story.rests(others=0.5)

        with pytest.raises(Inconclusive):
            story.judged("stored")


class TestStoredFirst:
    """The store holds all that is committed."""

    @pytest.mark.parametrize("number", [1, 2])
    def test_it_may_hold_more(self, number: int) -> None:
        """Two entries are committed, and the state holds both, or the third one too."""
        story, rows = three_states()
        story.settled(2, down=False)
        story.stored(ada=rows[number])

        assert story.found("stored-first") == []

    @pytest.mark.parametrize("kept", [{}, {"ada": 0}])
    def test_it_holds_less(self, kept: dict[str, int]) -> None:
        """The first entry that is committed and not stored is what a crash would lose."""
        story, rows = three_states()
        story.settled(2, down=False)
        story.stored(**{account: rows[number] for account, number in kept.items()})

        assert story.found("stored-first") == [("behind-commit", "ada", "app-entries-0@1")]

    def test_it_holds_no_state(self) -> None:
        """A sum that no fold gives is no later state."""
        story, rows = three_states()
        story.settled(0, down=False)
        wrong = (rows[1].value or b"").replace(b'"balance_cents": 2', b'"balance_cents": 99')
        story.stored(ada=rows[1]._replace(value=wrong))

        assert [name for name, _, _ in story.found("stored-first")] == ["phantom"]


class TestContained:
    """While its store was away, it took no more memory than a runtime takes by itself."""

    @pytest.mark.parametrize(
        ("grown_mib", "found"), [(32, []), (-5, []), (33, [("unbounded", None, None)])]
    )
    def test_what_it_has_more_at_the_end(
        self, grown_mib: int, found: list[tuple[str, None, None]]
    ) -> None:
        """Of a hundred MiB that it had before, no more than 32 may be added."""
        story, _ = three_states()
        story.has_in_memory(100)
        story.has_in_memory(100 + grown_mib)

        assert story.found("contained") == found


class TestThrottled:
    """No account is written more often than once an interval."""

    @pytest.mark.parametrize("end", [None, Story.kill])
    @pytest.mark.parametrize(("writes", "found"), [(2, []), (3, [("early", "ada", None)])])
    def test_once_an_interval_and_once(
        self, writes: int, found: list[tuple[str, str, None]], end: Callable[[Story], None] | None
    ) -> None:
        """In a life of 600 ms two writes are allowed: one for the interval, and one."""
        story, _ = three_states()
        if end:
            story._happens("a", "killed", at_ms=600)
        story.stored(*((100 * number, "ada") for number in range(writes)), at_ms=600)

        assert story.found("throttled") == found

    def test_the_closing_write_is_excepted(self) -> None:
        """A graceful close may write once more.

        The next life counts from its own start.
        """
        story, _ = three_states(interval_ms=1000)
        story.stop(at_ms=600)
        story._happens("a", "started", at_ms=700)
        story.stored((100, "ada"), (600, "ada"), (700, "ada"), at_ms=800)

        assert story.found("throttled") == []

    def test_nothing_was_at_stake(self) -> None:
        """If no account changes more often than it may be written, nothing is shown."""
        story, _ = three_states(interval_ms=10)
        story.stored((0, "ada"), at_ms=600)

        with pytest.raises(Inconclusive, match="held back"):
            story.judged("throttled")
