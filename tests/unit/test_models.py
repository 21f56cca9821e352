"""The public API of models."""

import doctest
from typing import Any

import pytest

from upheld import models
from upheld.models import Fold, Map

# As somebody calls them who has no type checker.
ANY_MAP: Any = Map
ANY_FOLD: Any = Fold


def test_examples() -> None:
    """The examples of the module's docstring are right."""
    found = doctest.testmod(models)

    assert (found.failed, found.attempted == 14) == (0, True)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ANY_MAP(7), "`step` of a Map is 7, and no function"),
        (lambda: ANY_FOLD("a", 0), "`step` of a Fold is 'a', and no function"),
        (
            lambda: ANY_FOLD(lambda state, _: (state, []), 0, key="id"),
            "`key` of a Fold is 'id', and no function",
        ),
    ],
)
def test_what_is_no_function_is_refused(make: Any, said: str) -> None:
    """A model whose parts cannot be called is refused where it is made."""
    with pytest.raises(TypeError) as refused:
        make()

    assert str(refused.value) == said
