"""Designs and rows as tests name them; nothing is read before the collection."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any, Final, TypeVar

import pytest

MARK: Final = "upheld"
FIXTURE: Final = "upheld_row"
Test = TypeVar("Test", bound=Callable[..., Any])


@dataclass(frozen=True)
class Design:
    """A design that tests judge.

    Attributes:
        path: Its design.toml or the folder that has one, absolute.
        options: Options of `upheld run`.
    """

    path: Path
    options: tuple[str, ...] = ()

    def guarantees(self, *ids: str, depth: str | None = None) -> Callable[[Test], Test]:
        """Return a decorator that makes a test of each row of these guarantees.

        It stands on a function, or on a class of tests. The body of a test runs once its row is
        upheld, and may take the result of the row as its argument `upheld_row`.

        Args:
            ids: Ids such as G22; without any, all that the design has promised.
            depth: quick, core or full. Named guarantees are judged at full depth by default, and
                all of them at core, as `upheld run` does.
        """
        return Asked(self, ids, depth).mark


@dataclass(frozen=True)
class Asked:
    """The rows that a decorator asks for.

    Attributes:
        design: The design that is judged.
        guarantees: Ids of guarantees; all if there are none.
        depth: The depth, as it was typed; the usual one if it is None.
        features: Features of a user's own, all of whose rows are asked for instead.
    """

    design: Design
    guarantees: tuple[str, ...]
    depth: str | None = None
    features: tuple[Path, ...] = ()

    def mark(self, test: Test) -> Test:
        """Mark a test, which becomes one a row."""
        marked: Test = pytest.mark.usefixtures(FIXTURE)(test)
        return getattr(pytest.mark, MARK).with_args(self)(marked)  # type: ignore[no-any-return]


def of_features(asked: Asked, caller: FrameType) -> None:
    """Put a test of the scenarios of a user's own into the calling module."""

    def test() -> None:
        pass

    names = caller.f_globals
    test.__module__ = names["__name__"]
    test.__code__ = test.__code__.replace(
        co_filename=caller.f_code.co_filename, co_firstlineno=caller.f_lineno
    )
    stem = re.sub(r"\W", "_", asked.features[0].stem)
    name = next(n for n in (f"test_{stem}{'_' * more}" for more in count()) if n not in names)
    names[name] = asked.mark(test)
