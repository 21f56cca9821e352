"""The least values of the parameters of a start."""

from typing import Final

from upheld.adapter import Failed

LEAST: Final = {
    "commit_interval_ms": 1,
    "persistence_interval_ms": 1,
    "threshold": 1,
    "interval_ms": 1,
    "delete_retention_ms": 0,
}


def check_parameters(parameters: dict[str, int]) -> None:
    """Refuse a parameter that is below its least value.

    Raises:
        Failed: The first of them, with its value and the least one.
    """
    for name, least in LEAST.items():
        if (value := parameters.get(name, least)) < least:
            raise Failed("conflict", f"{name} is {value}, and must be {least} or more")
