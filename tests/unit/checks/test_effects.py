"""Effects outside of Kafka, on hand-written histories."""

import pytest
from histories import Story

from upheld.history.events import Told
from upheld.verdicts import Inconclusive


def told(*events: str) -> Story:
    """Tell two visible events, each a batch of its own, then the effects."""
    story = Story("batcher", threshold=1, interval_ms=1000)
    story.start()
    story.visits("ada", "ab")
    out = {event: story.out("ada", event) for event in "ab"} | {
        "c": story.out("ada", "c", visible=False)
    }
    lines = tuple(("ada", (out[event].value or b"").decode()) for event in events)
    story.history.add(Told(at_ms=0, application="app", lines=lines))
    return story


class TestTold:
    """All that is visible, and more."""

    @pytest.mark.parametrize("events", ["aab", "abab", "abc"])
    def test_again_or_never_to_be(self, events: str) -> None:
        """An effect may be told twice, and so may that of an aborted output."""
        assert told(*events).found("told") == []

    @pytest.mark.parametrize("events", ["", "a", "aac"])
    def test_missing(self, events: str) -> None:
        """Each visible output was told outside."""
        assert {name for name, _, _ in told(*events).found("told")} == {"lost"}

    def test_exactly_once_by_luck(self) -> None:
        """Nothing more than what is visible proves nothing."""
        with pytest.raises(Inconclusive):
            told("a", "b").found("told")
