"""The plain design: starts it refuses, and what it hands over with a partition."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from upheld.adapter import Failed
from upheld.impl.plain import Batcher, Place, Plain
from upheld.impl.plain.group import settled

HERE = Place("visits", 0)
THERE = Place("visits", 1)


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


def test_what_waits_stays_with_the_partition_that_it_was_read_from() -> None:
    """An instance that takes one partition over loads what waited of that one alone."""
    batcher = Batcher()
    batcher.load(HERE, {"ada": [{"action": "1"}], "bob": [{"action": "2"}]})
    batcher.load(THERE, {"bob": [{"action": "3"}]})

    waiting = batcher.waiting()

    assert waiting == {
        HERE: {"ada": [{"action": "1"}], "bob": [{"action": "2"}]},
        THERE: {"bob": [{"action": "3"}]},
    }
    successor = Batcher()
    successor.load(THERE, waiting[THERE])
    assert [row.key for row in successor.rest()] == [b"bob"]


class Answers:
    """A consumer whose answers on committed offsets are given."""

    def __init__(self, *errors: int | None) -> None:
        self.left = list(errors)

    def committed(self, *_: object) -> list[Any]:
        """Return one offset, with the next error."""
        code = self.left.pop(0)
        return [SimpleNamespace(offset=7, error=None if code is None else KafkaError(code))]


def test_offsets_of_an_open_transaction_are_waited_for() -> None:
    """Any other error is none to wait for."""
    unstable = KafkaError.UNSTABLE_OFFSET_COMMIT
    pending: Any = Answers(unstable, unstable, None)
    denied: Any = Answers(unstable, KafkaError.GROUP_AUTHORIZATION_FAILED)

    assert [place.offset for place in settled(pending, [])] == [7]
    with pytest.raises(KafkaException, match="GROUP_AUTHORIZATION_FAILED"):
        settled(denied, [])
