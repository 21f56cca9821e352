"""Sentences are looked up once in a run, and pytest-bdd is as it was after it."""

import sys
from types import SimpleNamespace
from typing import Any

from upheld.runner.definitions import looked_up_once, once

SCENARIO: Any = sys.modules["pytest_bdd.scenario"]


def test_a_name_is_looked_up_once() -> None:
    """The second row is given what the first one found, and nothing may be found too."""
    asked: list[tuple[str, object]] = []

    def lookup(_: Any, name: str, node: Any) -> Any:
        asked.append((name, node))
        return [name] if name == "known" else None

    remembered = once(lookup)
    rows: list[Any] = [SimpleNamespace(), SimpleNamespace()]
    manager: Any = SimpleNamespace()

    assert [remembered(manager, "known", row) for row in rows] == [["known"], ["known"]]
    assert [remembered(manager, "unknown", row) for row in rows] == [None, None]
    assert asked == [("known", rows[0]), ("unknown", rows[0])]


def test_pytest_bdd_is_left_as_it_was() -> None:
    """Another run in the same process looks up its own sentences."""
    usual = SCENARIO.getfixturedefs
    with looked_up_once():
        assert SCENARIO.getfixturedefs is not usual

    assert SCENARIO.getfixturedefs is usual
