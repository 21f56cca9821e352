"""The plain design refuses some starts before it asks a broker for anything."""

import pytest

from upheld.adapter import Failed
from upheld.impl.plain import Plain


@pytest.mark.parametrize(
    ("program", "parameters", "says"),
    [
        ("batcher", {"threshold": 0}, "threshold is 0, and must be 1 or more"),
        (
            "batcher",
            {"threshold": 3, "interval_ms": -5},
            "interval_ms is -5, and must be 1 or more",
        ),
        ("ledger", {"commit_interval_ms": 0}, "commit_interval_ms is 0, and must be 1 or more"),
        (
            "holdings",
            {"delete_retention_ms": -1},
            "delete_retention_ms is -1, and must be 0 or more",
        ),
    ],
)
def test_an_absurd_parameter_is_refused(
    program: str, parameters: dict[str, int], says: str
) -> None:
    """One sentence names the parameter, its value and the least value.

    Nothing is opened.
    """
    with pytest.raises(Failed, match=f"^{says}$") as failed:
        Plain().open({"program": program, "parameters": parameters})

    assert failed.value.kind == "conflict"
