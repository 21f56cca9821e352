"""The answers of an application say what is claimed of it, and a user is told."""

from types import SimpleNamespace
from typing import Any

import pytest

from upheld.history import History
from upheld.history.events import Answered, Application, Contract, FurtherOutput, Record
from upheld.protocol.messages import Mode
from upheld.sweep.answers import asked
from upheld.sweep.life import CLAIMS, Subject


def record(topic: str, offset: int, key: bytes) -> Record:
    """Return a record of a topic."""
    return Record(topic, 0, offset, 0, key, b"{}")


def answered(outputs: list[bytes], *unstable: str, mode: Mode = "exactly_once") -> History:
    """Return a history of an order of ada and one of bob, and the answer to them."""
    history = History()
    history.add(
        Application(
            name="ledger",
            application_id="trial",
            program="ledger",
            mode=mode,
            topics={"orders": "orders", "costs": "costs"},
            parameters={},
            transaction_timeout_ms=1_000,
            contract=Contract(
                name="shop", reads="orders", writes="costs", format="json", ignore=("$.at",)
            ),
        )
    )
    history.add_all(record("orders", offset, key) for offset, key in enumerate((b"ada", b"bob")))
    history.add_all(record("once", offset, key) for offset, key in enumerate(outputs))
    history.add(
        Answered(
            at_ms=1,
            application="ledger",
            inputs="digest",
            outputs="once",
            topics=("once",),
            unstable=unstable,
        )
    )
    return history


def subject(progress: str = "group") -> Subject:
    """Return an application that is to be swept."""
    nothing: Any = SimpleNamespace(name="shop", progress=progress)
    return Subject(nothing, nothing, "ledger", "exactly_once")


def test_what_is_not_compared_is_said() -> None:
    """A field that is declared and one that was found are told apart."""
    said = asked(subject(), answered([b"ada", b"bob"], "$.at", "$.id"), 4.25)

    assert said.text == (
        "shop is its own oracle: asked without a fault in 4.2 s; not compared: $.at (as declared), "
        "$.id (it differs between two runs without a fault)"
    )
    assert said.subject.claims == CLAIMS


def test_each_output_says_what_is_not_compared() -> None:
    """A field has the name of its output, and so has what shows no input."""
    one = answered([b"ada", b"bob"])
    history = History()
    for event in one.events:
        if isinstance(event, Application):
            assert event.contract
            alerts = FurtherOutput(writes="alerts", format="json")
            contract = event.contract.model_copy(update={"further": (alerts,)})
            history.add(event.model_copy(update={"contract": contract}))
        elif isinstance(event, Answered):
            history.add(event.model_copy(update={"output": "costs"}))
            alerted = {"output": "alerts", "outputs": "alerted", "unstable": ("$.now",)}
            history.add(record("alerted", 0, b"ada"))
            history.add(event.model_copy(update=alerted))
        else:
            history.add(event)
    said = asked(subject(), history, 4.25)

    assert said.text == (
        "shop is its own oracle: asked without a fault in 4.2 s; not compared: costs $.at (as "
        "declared), alerts $.now (it differs between two runs without a fault); no prefix rule: "
        "the keys of alerts have more or fewer outputs than inputs, so that nobody can say which "
        "outputs a committed offset covers"
    )


@pytest.mark.parametrize("outputs", [[b"ada"], [b"ada", b"bob", b"bob"]], ids=["fewer", "more"])
def test_the_prefix_rule_is_claimed_if_each_output_has_its_input(outputs: list[bytes]) -> None:
    """Otherwise it is left out and said, and all else is claimed as before."""
    said = asked(subject(), answered(outputs), 1)

    assert [*said.subject.claims] == ["relation", "side-effects"]
    assert "no prefix rule: its keys have more or fewer outputs than inputs" in said.text


@pytest.mark.parametrize(
    ("progress", "mode", "is_claimed"),
    [
        ("group", "at_least_once", True),
        ("none", "at_least_once", False),
        ("group-leads", "at_least_once", False),
        ("none", "exactly_once", True),
    ],
)
def test_the_prefix_rule_needs_offsets_or_outputs_that_do_not_lead(
    progress: str, mode: Mode, is_claimed: bool
) -> None:
    """If outputs may lead offsets that say nothing, each cut is of some prefix."""
    said = asked(subject(progress), answered([b"ada", b"bob"], mode=mode), 1)

    assert ("fold" in said.subject.claims) == is_claimed
    why = f'no prefix rule: its progress is in no group (progress = "{progress}")'
    assert (why in said.text) == (not is_claimed)
