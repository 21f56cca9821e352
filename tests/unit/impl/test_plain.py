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


class FailedTransaction:
    """A producer whose transaction has failed, and what each call raises of it."""

    def __init__(self, begins: int, aborts: int | None) -> None:
        self._begins = begins
        self._aborts = aborts
        self.calls = list[str]()

    def begin_transaction(self) -> None:
        """Raise the first error of the transaction that has failed."""
        self.calls.append("begin")
        raise KafkaException(KafkaError(self._begins))

    def abort_transaction(self, _: float) -> None:
        """Raise if the broker refuses the abort."""
        self.calls.append("abort")
        if self._aborts is not None:
            raise KafkaException(KafkaError(self._aborts))


def gave_up(producer: FailedTransaction, code: int) -> Failed:
    """Give a transaction up after an error, and return the loud stop."""
    plain = Plain()
    standing: Any = {"producer": producer, "in_transaction": True, "output": "balances"}
    vars(plain).update(standing)
    with pytest.raises(Failed) as failed:
        plain.give_up(KafkaError(code))
    return failed.value


@pytest.mark.parametrize(
    ("first", "kind"),
    [
        (KafkaError.MSG_SIZE_TOO_LARGE, "refused"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "denied"),
        (KafkaError.PRODUCER_FENCED, "fenced"),
        (KafkaError._STATE, "storage"),
    ],
)
def test_a_transaction_that_has_failed_says_why(first: int, kind: str) -> None:
    """A call says only that it has; the next transaction says the first error."""
    producer = FailedTransaction(begins=first, aborts=None)

    assert gave_up(producer, KafkaError._STATE).kind == kind
    assert producer.calls == ["begin", "abort"]


@pytest.mark.parametrize(
    ("aborts", "kind"),
    [(KafkaError.INVALID_TXN_STATE, "denied"), (KafkaError.PRODUCER_FENCED, "fenced")],
)
def test_an_abort_that_fails_hides_no_reason(aborts: int, kind: str) -> None:
    """If the broker has no such transaction, the first error stays.

    A fencing was its reason.
    """
    producer = FailedTransaction(begins=KafkaError._STATE, aborts=aborts)

    assert gave_up(producer, KafkaError.TOPIC_AUTHORIZATION_FAILED).kind == kind
    assert producer.calls == ["abort"]
