"""What a design says of how far it is behind, on hand-written histories: events at 0, 1, 2 … seconds, one partition."""

import pytest
from histories import Story

from streamgate.history.events import Lag
from streamgate.verdicts import Inconclusive, NotOffered


def asked(*answers: tuple[int, int, int, int]) -> Story:
    """Five events, one a second; then what it says at a time, with what is committed and the end then."""
    story = Story("batcher", threshold=3, interval_ms=1000)
    story.start()
    for number in range(5):
        story.visits("ada", "abcde"[number], seen_ms=1000 * number)
    place = f"{story.reads}-0"
    for at_ms, says, committed, end in answers:
        at = {"committed": {place: committed}, "high_watermark": {place: end}}
        story.history.add(Lag(at_ms=at_ms, application="app", name="a", offsets=says, **at))
    return story


BEHIND, DONE, AT_REST = (2000, 3, 0, 3), (9000, 0, 5, 5), (12000, 0, 5, 5)


class TestLag:
    """Between the records that had waited for a second and all that was not committed a second before."""

    @pytest.mark.parametrize(
        ("answer", "is_right"),
        [
            ((4500, 5, 0, 5), True),
            ((4500, 4, 0, 5), True),  # the last event is half a second old
            ((4500, 3, 0, 5), False),
            ((4500, 6, 0, 5), False),  # so far the input does not go
            ((4500, 6, 0, 6), True),  # a marker may count
            ((4500, 0, 5, 5), True),
            ((4500, 5, 5, 5), True),  # nothing was committed when it was asked a second before
            ((4500, 0, 3, 5), False),  # read, perhaps, and not committed
            ((9999, 1, 5, 5), True),
            ((10000, 1, 5, 5), False),  # all was committed a second before
        ],
    )
    def test_bounds(self, answer: tuple[int, int, int, int], *, is_right: bool) -> None:
        """An answer may be a second old."""
        story = asked(*sorted([BEHIND, answer, DONE, AT_REST]))

        assert [name for name, _, _ in story.found("lag")] == ([] if is_right else ["misstated"])

    @pytest.mark.parametrize("answers", [[DONE, AT_REST], [BEHIND], [BEHIND, DONE]])
    def test_says_nothing(self, answers: list[tuple[int, int, int, int]]) -> None:
        """Where it was never behind, or always, there is no lie to be caught in."""
        with pytest.raises(Inconclusive):
            asked(*answers).found("lag")

    def test_is_not_asked(self) -> None:
        """A design that cannot tell is unsupported."""
        with pytest.raises(NotOffered, match="capability lag"):
            asked().found("lag")
