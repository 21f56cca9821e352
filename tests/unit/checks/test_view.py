"""A view reads a history before any check does."""

import pytest
from joins_in_words import told

from upheld.checks.view import view_of


@pytest.mark.parametrize(
    ("program", "reads", "outputs", "settled"),
    [
        ("holdings", "1A .A", "0 0+1", True),
        ("holdings", "1A .A", "0", False),
        ("holdings", "1A .A", "0+1 0", False),
        ("holdings", "1A .A 2", "0+1", False),
        ("holdings", "1A -1 -2", "", True),
        ("holdings", "1A -1", "0", False),
        ("holdings", "1A -1", "0 -0", True),
        ("holdings", "1A .A -.A", "0", True),
        ("clients", "1", "", True),
        ("clients", "1 .1", "", False),
        ("clients", "1 .1 -.1", "0+1", False),
    ],
)
def test_settled(program: str, reads: str, outputs: str, settled: bool) -> None:
    """A view is settled when every key shows its last state.

    A key without anything to show shows nothing.
    """
    assert view_of(told(program, reads, outputs).history, "app").is_settled is settled
