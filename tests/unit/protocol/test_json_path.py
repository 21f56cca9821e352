"""A path leads to one place of a JSON value."""

from typing import Any

import pytest

from upheld.protocol.json_path import MISSING, JsonPath

VALUE = {"account": "a", "items": [{"unit price": 3}, {"unit price": 4}], "straße": None}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$.account", "a"),
        ("$['account']", "a"),
        ("$.items[1]['unit price']", 4),
        ('$.items[-1]["unit price"]', 4),
        ("$.straße", None),
        ("$.items[2]", MISSING),
        ("$.account.name", MISSING),
        ("$.account[0]", MISSING),
        ("$.items.account", MISSING),
    ],
)
def test_a_path_finds_its_place(path: str, found: object) -> None:
    """A null is found, and what a value does not have is missing."""
    assert JsonPath.read(path).found(VALUE) == found


@pytest.mark.parametrize(
    "path",
    [
        *("account", "", "$", "$.*", "$..account", "$.items[*]", "$.items[0:2]"),
        *("$.items[?@.a]", "$.", "$[01]", "$.a b", "$['a'b']", "$ .a"),
    ],
)
def test_a_path_to_several_places_is_refused(path: str) -> None:
    """So is a text that is no path."""
    with pytest.raises(ValueError, match=r"\$"):
        JsonPath.read(path)


@pytest.mark.parametrize("path", ["$.account", "$.items[0]['unit price']", "$.items[-1]"])
def test_a_place_is_replaced_in_a_copy(path: str) -> None:
    """The value itself stays, and so does everything beside the place."""
    place = JsonPath.read(path)
    before: Any = {**VALUE, "items": [dict(each) for each in VALUE["items"] or []]}

    after = place.replaced(VALUE, "new")

    assert place.found(after) == "new"
    assert before == VALUE
    assert place.replaced(after, place.found(VALUE)) == VALUE


def test_a_place_that_is_missing_is_not_made() -> None:
    """A field with a slip in its name would appear beside the one that was meant."""
    with pytest.raises(LookupError):
        JsonPath.read("$.items[0].price").replaced(VALUE, 1)


@pytest.mark.parametrize(
    ("path", "left"),
    [
        ("$.a", {"b": [1, {"c": 2}]}),
        ("$.b[0]", {"a": 0, "b": [None, {"c": 2}]}),
        ("$.b[1].c", {"a": 0, "b": [1, {}]}),
        ("$.c", {"a": 0, "b": [1, {"c": 2}]}),
        ("$.a.b", {"a": 0, "b": [1, {"c": 2}]}),
    ],
)
def test_a_place_is_taken_out(path: str, left: Any) -> None:
    """The other items of a list stay where they are."""
    value: Any = {"a": 0, "b": [1, {"c": 2}]}
    JsonPath.read(path).take_out(value)

    assert value == left
