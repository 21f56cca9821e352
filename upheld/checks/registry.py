"""The checks by their names. Each declares the anomalies that it can find."""

from collections.abc import Callable
from typing import Final, TypeVar

from upheld.verdicts import Anomaly

Check = Callable[..., list[Anomaly]]  # (history, application name, the claim's own arguments)
C = TypeVar("C", bound=Check)

# The anomalies of a value that no fold of the input gives.
NO_STATE: Final = ("phantom", "torn", "uncommitted-visible", "duplicated", "lost")
# The anomalies of outputs that the model relates to the input one by one.
RELATION: Final = (
    "lost",
    "duplicated",
    "reordered",
    "stale-overwrite",
    "resurrected",
    "torn",
    "uncommitted-visible",
    "phantom",
)

CHECKS: Final[dict[str, Check]] = {}
ANOMALIES: Final[dict[str, tuple[str, ...]]] = {}  # of each check, for `explain` and the lint


def check(name: str, *, anomalies: tuple[str, ...]) -> Callable[[C], C]:
    """Register a check under the name that histories have it by.

    Args:
        name: The claim's check in a history. It never changes.
        anomalies: The names of all anomalies that the check can return.
    """

    def register(function: C) -> C:
        if name in CHECKS:
            raise ValueError(f"two checks are called {name!r}")
        CHECKS[name] = function
        ANOMALIES[name] = anomalies
        return function

    return register
