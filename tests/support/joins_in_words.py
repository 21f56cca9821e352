"""Joins told in words.

Input in words: `1A` is a row 1 that refers to A (`1` to nobody, or of `clients` just row 1), `.A`
its partner; `-1` and `-.A` delete them, and what stands in brackets was aborted. Output in words:
`0+1` joins these two records by number, `0` is the row alone, `-0` deletes its result.
"""

from typing import Any

from histories import Story

from upheld.history.events import Record


def told(
    program: str, reads: str, *lives: str, mode: str = "exactly_once", **options: Any
) -> Story:
    """Tell a join in words.

    Args:
        program: The join.
        reads: The records that it is fed.
        lives: The outputs of each life; a new start is between two of them.
        mode: The mode of the application.
        options: Other options of the story.
    """
    story = Story(program, mode, **options)
    records: list[Record] = []
    for word in reads.split():
        name = word.strip("()-")
        visible = not word.startswith("(")
        table = story.right if name.startswith(".") else story.left
        value: dict[str, Any] = {"value": None} if "-" in word else {}
        records.append(
            table(*(name[1:] if name.startswith(".") else name), visible=visible, **value)
        )
    story.start()
    for again, piece in enumerate(lives):
        if again:
            story.kill()
            story.start()
        for word in piece.split():
            left, _, right = word.removeprefix("-").partition("+")
            if word.startswith("-"):
                story.tombstone(records[int(left)])
            else:
                story.joined(records[int(left)], records[int(right)] if right else None)
    return story


def names(story: Story, check: str, **arguments: Any) -> list[str]:
    """Return the names of the anomalies that a check finds."""
    return [name for name, _, _ in story.found(check, **arguments)]
