"""No row, promise, anomaly or message of the protocol changes unnoticed."""

import pytest
from goldens import GOLDENS, as_text, differences, protocol, stored


@pytest.mark.parametrize("name", GOLDENS)
def test_is_as_stored(name: str) -> None:
    """A golden file holds what the code says; `python tools/golden.py` writes it."""
    found = list(differences(stored(name), GOLDENS[name]()))

    assert not found, "\n".join(found)


def test_a_difference_names_the_entry() -> None:
    """An entry that is gone, new or other is told by its key, with both values."""
    assert list(differences({"a": 1, "b": 2, "c": 3}, {"b": 2, "c": 4, "d": 5})) == [
        "a is gone",
        "c was 3 and is 4",
        "d is new",
    ]


def test_wording_is_left_out() -> None:
    """A title or a description of the schema may be reworded.

    A property of that name stays.
    """
    text = as_text(protocol())

    assert '"description": "' not in text
    assert '"properties"' in text
