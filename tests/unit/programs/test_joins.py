"""Roles and values of the joins."""

import pytest
from histories import Story
from joins_in_words import told

from upheld.programs import CLIENTS, GONE, HOLDINGS, Unreadable


def test_roles() -> None:
    """A join has both inputs in its roles, topics and commits.

    A broadcast join commits the first one alone.
    """
    story = told("tickers", "")

    assert HOLDINGS.inputs == HOLDINGS.commits == ("positions", "tickers")
    assert (story.program.inputs, story.program.commits) == (
        ("positions", "tickers"),
        ("positions",),
    )
    assert CLIENTS.topics == {
        "client-positions": "input",
        "client-details": "input",
        "joined": "output",
    }
    assert set(HOLDINGS.parameters) - set(CLIENTS.parameters) == {"delete_retention_ms"}


def test_what_an_output_says() -> None:
    """A pair is its positions and rows, and a tombstone is gone.

    A list in a pair compares.
    """
    story = Story("clients")
    left = story.left("1", 1, 3)
    right = story.right("1")

    assert CLIENTS.value_of(story.joined(left, right)) == (
        "client-positions-0@0",
        "client-details-0@0",
        ("1", (1, 3)),
        ("1", "n1", "s", "e"),
    )
    assert CLIENTS.value_of(story.tombstone(left)) == GONE
    with pytest.raises(Unreadable, match="no result of the contract"):
        CLIENTS.value_of(left)
