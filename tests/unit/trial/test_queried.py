"""The table of an application is asked for the keys that it has shown."""

from types import SimpleNamespace
from typing import Any

import pytest

from upheld.history.events import Contract
from upheld.trial.queried import note_keys, table_role

CONTRACT = Contract(name="orders", reads="orders", writes="costs", format="json", asked={})


def application(program: str, contract: Contract | None) -> Any:
    """Return an application that is declared as a program."""
    event = SimpleNamespace(program=program, contract=contract)
    return SimpleNamespace(event=event, program=SimpleNamespace(writes="frequency"), keys=["ada"])


@pytest.mark.parametrize(
    ("program", "contract", "role"),
    [
        ("pulse", None, "frequency"),
        ("pulse", CONTRACT, "costs"),
        ("relay", CONTRACT, ""),
        ("relay", None, ""),
    ],
)
def test_a_table_is_asked_on_rows_of_tables(
    program: str, contract: Contract | None, role: str
) -> None:
    """On other rows an application is not asked, whatever it offers."""
    assert table_role(application(program, contract)) == role


def test_keys_are_asked_for_once_and_as_text() -> None:
    """No query can name a key of other bytes, or none."""
    asked = application("pulse", CONTRACT)
    note_keys(asked, [b"bob", b"ada", None, b"\xff", b"", b"bob"])

    assert asked.keys == ["ada", "bob"]
