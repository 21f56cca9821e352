"""Deliveries are in time and never early, on hand-written histories."""

from contextlib import nullcontext

import pytest
from histories import Story
from stories import BOTH_MODES, BOTH_PROGRAMS, all_rows, balances, three_entries

from upheld.verdicts import Disturbed, Inconclusive


class TestPromptly:
    """While the input rests, its outcome is visible in time."""

    @BOTH_MODES
    def test_in_time(self, mode: str) -> None:
        """Every key stands at its last state when the outputs are looked at."""
        story, entries = three_entries(mode)
        all_rows(story, entries)
        story.rests()

        assert story.found("promptly") == []

    @BOTH_MODES
    def test_late(self, mode: str) -> None:
        """A key that still stands at an older state is late."""
        story = balances(mode, "012")
        story.rests(looked_ms=2100)
        (anomaly,) = story.judged("promptly")

        assert (anomaly.name, anomaly.key, anomaly.source) == ("late", "ada", "app-entries-0@3")
        assert "2100 ms" in anomaly.text

    def test_once_is_enough(self) -> None:
        """A state that was shown in time was visible in time.

        So it is where at_least_once repeats an older state behind it.
        """
        story = balances("at_least_once", "0123", "1")
        story.rests()

        assert story.found("promptly") == []

    @BOTH_PROGRAMS
    def test_never(self, program: str) -> None:
        """A design that shows nothing is late for every key."""
        story = Story(program)
        story.entry(ada=1)
        story.rests(looked_ms=2100)

        assert [name for name, _, _ in story.found("promptly")] == ["late"]

    def test_aborted_at_the_end(self) -> None:
        """Nothing is due for an aborted entry, even if it ends its partition."""
        story = balances("exactly_once", "0123")
        story.aborted(ada=7)
        story.rests()

        assert story.found("promptly") == []

    @pytest.mark.parametrize("outputs", ["", "0123"])
    def test_the_canary_is_slow(self, outputs: str) -> None:
        """If a control record takes over half the tolerance, nothing can be said."""
        story = balances("exactly_once", outputs)
        story.rests(canary_ms=1050)
        assert [name for name, _, _ in story.found("promptly")] == ([] if outputs else ["late"])

        story.rests(canary_ms=1051)

        with pytest.raises(Inconclusive, match="1051 ms"):
            story.judged("promptly")

    @pytest.mark.parametrize("outputs", ["012", "0123"])
    def test_others_took_the_cores(self, outputs: str) -> None:
        """A late state proves nothing while others took over a quarter of the cores.

        A state in time is in time.
        """
        story = balances("exactly_once", outputs)
        on_time = outputs == "0123"
        story.rests(others=0.25)
        assert [name for name, _, _ in story.found("promptly")] == ([] if on_time else ["late"])

        story.rests(others=0.26)

        with nullcontext() if on_time else pytest.raises(Inconclusive, match="26% of the cores"):
            assert story.found("promptly") == []

    def test_nothing_moved_for_long(self) -> None:
        """A state that never came, while nothing moved, is late whatever others took."""
        story = balances("exactly_once", "012")
        story.rests(others=0.9, looked_on_ms=15_000, still_ms=15_000)

        assert [name for name, _, _ in story.found("promptly")] == ["late"]

    def test_it_came_late(self) -> None:
        """A state that came too late proves nothing while other processes took the cores."""
        story = balances("exactly_once", "0123")
        story.rests(looked_ms=2_900, others=0.9, looked_on_ms=100)

        with pytest.raises(Disturbed, match="until 800 ms after the promised time"):
            story.judged("promptly")

    def test_the_last_pause_counts(self) -> None:
        """An earlier pause, slow or not, is over."""
        story = balances("exactly_once", "0123")
        story.rests(canary_ms=5000)
        story.rests()

        assert story.found("promptly") == []


class TestPaced:
    """No more transactions end than intervals begin."""

    @staticmethod
    def life(ended: int, *, waves: int = 6) -> Story:
        """Tell a life of 1,500 ms with so many ends of transactions.

        Three intervals may begin in it.
        """
        story = Story("batcher", commit_interval_ms=1000, threshold=1, interval_ms=1000)
        story._happens("a", "started", at_ms=100)
        for number, visitor in enumerate("abcdef"[:waves], 1):
            story.visit("ada", visitor, seen_ms=200 * number)
            story.out("ada", visitor, at_ms=1600)
        for number in range(ended):
            story.batch(2 * number + 1, 2 * number + 1, 7, control="commit")
        return story

    @pytest.mark.parametrize(("ended", "found"), [(3, []), (4, [("early", None, None)])])
    def test_one_an_interval(self, ended: int, found: list[tuple[str, None, None]]) -> None:
        """Three transactions may end, and a fourth is one too many.

        The three are the start, and two ticks of a clock that strikes a moment later.
        """
        assert self.life(ended).found("paced") == found

    def test_nothing_was_at_stake(self) -> None:
        """Where no more waves came than transactions may end, nothing had to wait."""
        with pytest.raises(Inconclusive, match="no more waves"):
            self.life(3, waves=2).judged("paced")


class TestRecovered:
    """A new output is visible in time after a cold start."""

    @pytest.mark.parametrize(
        ("after_ms", "found"), [(2100, []), (2101, ["late"]), (None, ["late"])]
    )
    def test_the_bound(self, after_ms: int | None, found: list[str]) -> None:
        """The bound itself is in time; later, or never, is late."""
        story = Story()
        if after_ms:
            story.recovers(after_ms)
        story.rests(looked_ms=after_ms or 2150)

        assert [name for name, _, _ in story.found("recovered")] == found

    def test_nothing_moved_for_long(self) -> None:
        """A recovery that never came, while nothing moved, is late whatever others took."""
        story = Story()
        story.rests(looked_ms=17_000, others=0.5, looked_on_ms=15_000, still_ms=15_000)

        assert [name for name, _, _ in story.found("recovered")] == ["late"]

    def test_others_had_the_cores(self) -> None:
        """A late state proves nothing while others took the cores."""
        story = Story()
        story.rests(looked_ms=2150, others=0.5)

        with pytest.raises(Inconclusive):
            story.judged("recovered")


class TestAvailable:
    """All but one in so many states are visible within ten seconds.

    That is the service level of the article.
    """

    def four(self, *seen_ms: int) -> Story:
        """Tell four entries of ada, at 0 ms, and a row of each so far that is seen."""
        story = Story()
        story.start()
        entries = [story.entry(ada=1) for _ in range(4)]
        for number, (entry, at_ms) in enumerate(zip(entries, seen_ms, strict=False), 1):
            story.row("ada", number, number, entry, seen_ms=at_ms)
        story.rests()
        return story

    @pytest.mark.parametrize(
        ("seen_ms", "found"),
        [
            ((10, 10, 10, 10_000), []),
            ((10, 10, 10_000, 10_001), []),  # one of four may
            ((10, 10, 10_001, 10_001), ["late", "late"]),
            ((10, 10), ["late", "late"]),
        ],
    )
    def test_the_bound(self, seen_ms: tuple[int, ...], found: list[str]) -> None:
        """The bound itself is in time; one state more is late, or never visible."""
        assert [name for name, _, _ in self.four(*seen_ms).found("available", of=4)] == found

    def test_a_later_row_counts_it_in(self) -> None:
        """A design that conflates shows what it passed over."""
        story = Story()
        story.start()
        *_, last = [story.entry(ada=1) for _ in range(4)]
        story.row("ada", 4, 4, last, seen_ms=10_000)
        story.rests()

        assert story.found("available", of=4) == []

    def test_a_row_for_each(self) -> None:
        """A state that was passed over is never visible, if each was declared to be."""
        story = Story()
        story.start()
        *_, third, last = [story.entry(ada=1) for _ in range(4)]
        story.row("ada", 3, 3, third, seen_ms=10_000)
        story.row("ada", 4, 4, last, seen_ms=10_000)
        story.rests()

        found = story.emitting_every_state().found("available", of=4)

        assert [name for name, _, _ in found] == ["late", "late"]

    def test_too_few(self) -> None:
        """Four states do not show whether one in five is late."""
        with pytest.raises(Inconclusive, match="4 states"):
            self.four(10, 10, 10, 10).judged("available", of=5)
