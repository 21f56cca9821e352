"""An output of a design in a history, with every check of that history."""

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Final

from fuzzing import ROOT
from fuzzing.values import SEEDS, WORDS

sys.path.insert(0, str(ROOT / "tests" / "support"))

from histories import Story
from stories import four_letters, three_entries, two_signals

from upheld.checks import CHECKS
from upheld.history.events import Record
from upheld.verdicts import Outcome

__all__ = ["SEEDS", "WORDS", "outputs"]

KEYS: Final = (b"ada", None, b"", b"\xff\xfe")


def outputs(data: bytes) -> None:
    """Append the bytes as outputs of each program, and judge its story's claims."""
    for tell in STORIES:
        story = tell()
        for number, key in enumerate(KEYS):
            story.history.add(_output(story, number, key, data))
        for name in _judged(tell):
            with suppress(Outcome):
                for anomaly in CHECKS[name](story.history, story.name):
                    assert anomaly.model_dump_json()


@cache
def _judged(tell: Callable[[], Story]) -> tuple[str, ...]:
    """Return the checks that find in a story what they are made for."""
    return tuple(name for name in CHECKS if _is_judged(tell(), name))


def _is_judged(story: Story, name: str) -> bool:
    try:
        CHECKS[name](story.history, story.name)
    except Outcome:
        return True
    except (LookupError, TypeError, ValueError, StopIteration, AssertionError):
        return False  # the sentence gives arguments, or the story lacks an event
    return True


def _output(story: Story, number: int, key: bytes | None, data: bytes) -> Record:
    return Record(
        topic=story.writes,
        partition=0,
        offset=1_000 + number,
        timestamp_ms=0,
        key=key,
        value=data,
        headers=(("chain", data), ("id", data), ("id", None)),
    )


def _ledger() -> Story:
    return _rested(three_entries()[0])


def _relay() -> Story:
    return _rested(four_letters()[0])


def _pulse() -> Story:
    story, signal, _ = two_signals()
    story.answers(story.pulse("ada", signal))
    return _rested(story)


def _batcher() -> Story:
    story = Story("batcher")
    story.start()
    story.visits("ada", "abc")
    return _rested(story)


def _branches() -> Story:
    story = Story("branches", "at_least_once")
    story.start()
    story.entry(ada=100, bob=-100)
    return _rested(story)


def _holdings() -> Story:
    story = Story("holdings")
    story.start()
    story.right("T")
    story.left("ada", "T")
    return _rested(story)


def _rested(story: Story) -> Story:
    story.rests()
    story.settled(10)
    return story


STORIES: Final[tuple[Callable[[], Story], ...]] = (
    _ledger,
    _relay,
    _pulse,
    _batcher,
    _branches,
    _holdings,
)
