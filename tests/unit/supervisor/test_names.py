"""A wrong name in `ready` is told in one sentence, and a right one is left alone."""

import pytest

from upheld.protocol.messages import Ready, Start
from upheld.supervisor.names import wrong_name

OWN = "trial-abc-pulse"
START = Start(
    program="pulse",
    application_id=OWN,
    instance="a",
    bootstrap="broker:9092",
    topics={"motors": f"{OWN}-motors", "frequency": f"{OWN}-frequency"},
    session_timeout_ms=1,
    transaction_timeout_ms=1,
    state_dir="a",
    durable_dir="durable",
)

RIGHT = {
    "nothing": Ready(),
    "a group of any name": Ready(consumer_group="my group / 1"),
    "the longest group": Ready(consumer_group="g" * 32_767),
    "the longest topic": Ready(internal_topics=(OWN + "-" * (249 - len(OWN)),)),
    "the id as a prefix of transactions": Ready(transactional_id_prefix=OWN),
    "a prefix that is drawn": Ready(transactional_id_prefix="0b7e0a52-5a3c-4d0e-9d0b-0c5a64b7f1aa"),
    "topics that begin otherwise": Ready(internal_topics=(f"changelog__{OWN}--store",)),
    "an output as the table": Ready(table=f"{OWN}-frequency"),
    "a table of its own": Ready(table=f"{OWN}-changelog"),
    "no prefix and no table, said as empty text": Ready(transactional_id_prefix="", table=""),
}


@pytest.mark.parametrize("ready", RIGHT.values(), ids=RIGHT)
def test_right_names(ready: Ready) -> None:
    """Nothing is said of names that a right design may have."""
    assert wrong_name(START, ready) == ""


WRONG = {
    "a foreign topic": (Ready(internal_topics=("payments",)), "internal_topics 'payments'"),
    "a foreign one after an own": (
        Ready(internal_topics=(f"{OWN}-x", "payments")),
        "is not the application's own",
    ),
    "a path": (Ready(internal_topics=(f"../../{OWN}",)), "is no name of a topic"),
    "dots": (Ready(internal_topics=("..",)), "is no name of a topic"),
    "an empty topic": (Ready(internal_topics=("",)), "is no name of a topic"),
    "a line in a topic": (Ready(internal_topics=(f"{OWN}\n",)), r"\n' in ready"),
    "letters that only look alike": (
        Ready(internal_topics=(f"{OWN}-\u0430",)),
        "is no name of a topic",
    ),
    "another attempt's topic": (Ready(internal_topics=("trial-abd-pulse-x",)), "own"),
    "a topic that is too long": (Ready(internal_topics=(OWN + "x" * 250,)), "265 characters"),
    "an empty group": (Ready(consumer_group=""), "is empty"),
    "a huge group": (Ready(consumer_group="g" * 900_000), "has 900000 bytes"),
    "a group that is too long in bytes": (Ready(consumer_group="é" * 16_384), "32768 bytes"),
    "a group with an escape": (Ready(consumer_group="g\x1b[2J"), "cannot be printed"),
    "a group with a NUL": (Ready(consumer_group="g\0"), "cannot be printed"),
    "a foreign prefix": (Ready(transactional_id_prefix="x"), "transactional_id_prefix 'x'"),
    "a foreign table": (Ready(table="payments"), "table 'payments'"),
    "a path as the table": (Ready(table="../../x"), "is no name of a topic"),
    "an input as the table": (Ready(table=f"{OWN}-motors"), "is an input"),
    "Kafka's own topic": (Ready(table="__consumer_offsets"), "is not the application's own"),
}


@pytest.mark.parametrize(("ready", "said"), WRONG.values(), ids=WRONG)
def test_wrong_names(ready: Ready, said: str) -> None:
    """The sentence names field, fault and what was expected in one short line."""
    wrong = wrong_name(START, ready)

    assert said in wrong
    assert wrong.startswith("said ")
    assert "Expected" in wrong
    assert wrong.isprintable()
    assert len(wrong) < 400


def test_a_program_that_nobody_knows() -> None:
    """Each topic of the start may be the table then."""
    unknown = START.model_copy(update={"program": "unknown"})

    assert wrong_name(unknown, Ready(table=f"{OWN}-motors")) == ""
