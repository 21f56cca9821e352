"""The claims in one life of the sweep, where no design runs."""

from types import SimpleNamespace
from typing import Any

import pytest

from upheld.sweep.life import CLAIMS, Life


@pytest.mark.parametrize(
    ("ends", "made", "claims"),
    [
        ({}, CLAIMS, []),
        ({"app-entries-0": 4}, CLAIMS, ["fold"]),
        ({"app-entries-0": 4}, {"relation": "is kept"}, []),
    ],
    ids=["before the first wave", "after it", "of an application whose outputs have no input"],
)
def test_the_fold_is_claimed_once_there_is_input(
    ends: dict[str, int], made: dict[str, str], claims: list[str]
) -> None:
    """A crash before the first wave has nothing to fold; its row goes on to the end."""
    claimed = list[str]()
    life: Any = SimpleNamespace(
        subject=SimpleNamespace(claims=made),
        application=SimpleNamespace(input=SimpleNamespace(ends=ends)),
        trial=SimpleNamespace(
            waits=SimpleNamespace(settle=lambda *_, **__: None),
            claim=lambda check, *_: claimed.append(check),
        ),
    )

    Life._claim_fold(life)

    assert claimed == claims
