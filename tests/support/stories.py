"""Hand-written histories of the programs that several tests tell."""

from typing import Any

import pytest
from histories import Story

from upheld.history.events import Record

BOTH_MODES = pytest.mark.parametrize("mode", ["exactly_once", "at_least_once"])
BOTH_PROGRAMS = pytest.mark.parametrize("program", ["ledger", "relay"])


def three_entries(mode: str = "exactly_once", **options: Any) -> tuple[Story, list[Record]]:
    """Tell a ledger of three entries: ada and bob, ada alone, bob and eve."""
    story = Story("ledger", mode, **options)
    story.start()
    return story, [story.entry(ada=100, bob=-100), story.entry(ada=5), story.entry(bob=7, eve=1)]


def all_rows(story: Story, entries: list[Record]) -> None:
    """Append every state of the three entries, in order."""
    first, second, third = entries
    story.row("ada", 100, 1, first)
    story.row("bob", -100, 1, first)
    story.row("ada", 105, 2, second)
    story.row("bob", -93, 2, third)
    story.row("eve", 1, 1, third)


def four_letters(mode: str = "exactly_once", **options: Any) -> tuple[Story, list[Record]]:
    """Tell a relay that is fed four entries of one key."""
    story = Story("relay", mode, **options)
    story.start()
    return story, [story.entry(ada=cents) for cents in range(4)]


def relayed(mode: str, *pieces: str) -> Story:
    """Tell a relay whose outputs are these inputs by number.

    An instance starts anew between the pieces.
    """
    story, letters = four_letters(mode)
    for again, piece in enumerate(pieces):
        if again:
            story.kill()
            story.start()
        for number in piece:
            story.copy(letters[int(number)])
    return story


def balances(mode: str, *pieces: str, atomic: str = "batch") -> Story:
    """Tell a ledger of one account with four entries.

    The outputs are these states by number; an instance starts anew between the pieces.
    """
    story = Story("ledger", mode, atomic=atomic)
    story.start()
    entries = [story.entry(ada=cents) for cents in (1, 10, 100, 1000)]
    for again, piece in enumerate(pieces):
        if again:
            story.kill()
            story.start()
        for number in map(int, piece):
            story.row("ada", int("1111"[: number + 1]), number + 1, entries[number])
    return story


def names(found: list[tuple[str, Any, Any]]) -> list[str]:
    """Return the names of anomalies."""
    return [name for name, _, _ in found]


def two_signals(mode: str = "exactly_once") -> tuple[Story, Record, Record]:
    """Tell that a motor and a gripper of ada have said something."""
    story = Story("pulse", mode)
    story.start()
    return story, story.signal("ada", 10, 5), story.signal("ada", 20, 7, "grippers")


def right() -> Story:
    """Tell a ledger with one entry, its row, a kill and two claims."""
    story = Story()
    story.names("app-entries", "app-balances")
    story.start()
    story.row("ada", 1, 1, story.entry(ada=1))
    story.kill()
    story.settled(1)
    story.claims("fold")
    story.claims("relation")
    return story


def duplicated() -> Story:
    """Tell the same with the row twice."""
    story = right()
    story.row("ada", 1, 1, next(iter(story.history.of(Record))))
    story.claims("relation")
    return story
