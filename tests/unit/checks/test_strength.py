"""A verdict says what it rests on."""

from typing import Any

import pytest
from histories import EPOCH_MS

from upheld.checks import CHECKS
from upheld.checks.strength import Strength, asked, strength_of
from upheld.history import History
from upheld.history.events import (
    Answered,
    Application,
    Begun,
    Claim,
    Committed,
    Contract,
    ModelFile,
    Record,
)

CONTRACT = Contract(name="orders", reads="orders", writes="costs", format="json")
MODEL = ModelFile(place="orders.py:ORDERS", sha256="0", reads="json")


def story(
    *checks: str,
    contract: Contract | None = CONTRACT,
    answers: str = "ab",
    mode: Any = "exactly_once",
    committed: dict[str, int] | None = None,
    **begun: Any,
) -> History:
    """Return a history with claims; each letter is an answer of a key."""
    usual = {
        "scenario": "G1.story",
        "design": "orders",
        "design_version": "1",
        "atomic": "batch",
        "local_state": False,
        "broker": "none",
        "seed": 0,
        "attempt": 0,
        "application_id": "app",
        "names_are_ours": True,
    }
    history = History([Begun(**(usual | begun))])
    history.add(
        Application(
            name="app",
            application_id="app",
            program="ledger",
            mode=mode,
            topics={"orders": "in", "costs": "out"},
            parameters={},
            transaction_timeout_ms=3000,
            contract=contract,
        )
    )
    history.add_all(records("in", "ab"))
    if answers:
        history.add_all(records("asked", answers))
        history.add(
            Answered(
                at_ms=0,
                application="app",
                inputs="0",
                outputs="asked",
                topics=("asked",),
                is_ordered=answers[0] not in "?~",
                is_by_last_value=answers[0] == "~",
            )
        )
    history.add(Committed(at_ms=0, application="app", offsets=committed, stable_ms=0, down=True))
    for check in checks:
        history.add(Claim(check=check, application="app", sentence=check, arguments={}))
    return history


def records(topic: str, keys: str) -> list[Record]:
    """Return a record for each letter, which is its key."""
    return [
        Record(topic, 0, offset, EPOCH_MS, key.encode(), b"{}") for offset, key in enumerate(keys)
    ]


def test_what_checks_ask() -> None:
    """A check asks for what its anomalies tell apart."""
    assert list(asked("relation")) == ["relation", "order"]
    assert list(asked("fold")) == ["relation", "prefix"]
    assert list(asked("once")) == ["relation"]
    assert list(asked("side-effects")) == []
    assert list(asked("of another version")) == []
    assert {check for check in CHECKS if "prefix" in asked(check)} == {
        "fold",
        "below-the-commit",
        "whole-or-refused",
        "stored-first",
    }


ALL = ("relation", "order", "prefix")


@pytest.mark.parametrize(
    ("checks", "more", "strength"),
    [
        (("relation", "fold"), {"contract": None}, Strength("program", ALL)),
        (
            ("relation", "fold"),
            {"contract": CONTRACT.model_copy(update={"model": MODEL}), "answers": ""},
            Strength("model", ALL),
        ),
        (("relation", "fold"), {}, Strength("itself", ALL)),
        (
            ("relation", "fold"),
            {"contract": CONTRACT.model_copy(update={"compared_with": "previous"})},
            Strength("previous", ALL),
        ),
        (("relation",), {}, Strength("itself", ("relation", "order"))),
        (
            ("relation",),
            {
                "contract": CONTRACT.model_copy(
                    update={"identity": "$.id", "unique": {"orders": "$.id"}}
                )
            },
            Strength("itself", ("relation",), ("order",)),
        ),
        (
            ("relation", "fold"),
            {"answers": "abb"},
            Strength("itself", ("relation", "order"), ("prefix",)),
        ),
        (("once",), {"answers": "abb"}, Strength("itself", ("relation",))),
        (("relation", "fold"), {"answers": "?"}, Strength("itself", (), ALL)),
        (
            ("relation", "fold"),
            {"answers": "~"},
            Strength("itself", ("last value per key",), ALL),
        ),
        (
            ("relation", "fold"),
            {"answers": "~", "committed": {"in-0": 0}},
            Strength("itself", ("last value per key", "prefix"), ("relation", "order")),
        ),
        (("once",), {"answers": "~"}, Strength("itself", ("last value per key",), ("relation",))),
        (("silent",), {"answers": "~"}, Strength("itself")),
        (
            ("relation",),
            {
                "answers": "~",
                "contract": CONTRACT.model_copy(update={"increasing": "$.count"}),
            },
            Strength("itself", ("last value per key", "order"), ("relation",)),
        ),
        (("relation",), {"answers": ""}, Strength("itself", (), ("relation", "order"))),
        (
            ("fold",),
            {"contract": None, "progress": "none", "mode": "at_least_once"},
            Strength("program", ("relation",), ("prefix",)),
        ),
        (
            ("fold",),
            {"contract": None, "progress": "none"},
            Strength("program", ("relation", "prefix")),
        ),
        ((), {}, Strength()),
    ],
)
def test_what_a_row_rests_on(
    checks: tuple[str, ...], more: dict[str, Any], strength: Strength
) -> None:
    """The oracle is named, with what was asked of it, and what it does not know."""
    assert strength_of(story(*checks, **more)) == strength
