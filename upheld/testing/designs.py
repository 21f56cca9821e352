"""Designs and their rows as a test names them; nothing is read before pytest collects it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
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
        asked = Asked(self, ids, depth)

        def decorated(test: Test) -> Test:
            marked: Test = pytest.mark.usefixtures(FIXTURE)(test)
            return getattr(pytest.mark, MARK).with_args(asked)(marked)  # type: ignore[no-any-return]

        return decorated


@dataclass(frozen=True)
class Asked:
    """The rows that a decorator asks for.

    Attributes:
        design: The design that is judged.
        guarantees: Ids of guarantees; all if there are none.
        depth: The depth, as it was typed; the usual one if it is None.
    """

    design: Design
    guarantees: tuple[str, ...]
    depth: str | None
