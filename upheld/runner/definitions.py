"""The definitions of the sentences, which pytest-bdd looks up for each step.

It goes through the names of all fixtures, and has pytest find those of each name that the row may
see: 0.7 ms a step. All rows of a run see the same ones, since they stand in one module.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps

import pytest
from _pytest.fixtures import FixtureDef, FixtureManager
from _pytest.nodes import Node
from pytest_bdd.scenario import find_fixturedefs_for_step

Found = Sequence[FixtureDef[object]] | None
Lookup = Callable[[FixtureManager, str, Node], Found]

# Not an attribute of the package, which has a function of that name.
_SCENARIO = sys.modules[find_fixturedefs_for_step.__module__]


def once(lookup: Lookup) -> Lookup:
    """Return a lookup that asks another one once for each name, whichever the row."""
    known: dict[str, Found] = {}

    @wraps(lookup)
    def remembered(manager: FixtureManager, name: str, node: Node) -> Found:
        if name not in known:
            known[name] = lookup(manager, name, node)
        return known[name]

    return remembered


@contextmanager
def looked_up_once() -> Iterator[None]:
    """Have pytest-bdd look up the definitions of each name once while the body runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_SCENARIO, "getfixturedefs", once(_SCENARIO.getfixturedefs))
        yield
