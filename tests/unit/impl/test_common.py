"""The parts that both designs share: guards around Kafka's client, and effects."""

import json
import sqlite3
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from upheld.adapter import Failed
from upheld.impl.common import topics
from upheld.impl.common.clients import forward_errors, with_timeout
from upheld.impl.common.effects import Effects
from upheld.impl.common.stores import loudly


def test_a_call_that_returns_in_time() -> None:
    """It gets its arguments, and the caller goes on."""
    said = list[object]()

    with_timeout(5, lambda *arguments: said.extend(arguments), "offsets", 10)

    assert said == ["offsets", 10]


def test_a_call_that_raises() -> None:
    """Its exception is the caller's."""

    def refuse() -> None:
        raise KafkaException(KafkaError(KafkaError._FENCED))

    with pytest.raises(KafkaException, match="_FENCED"):
        with_timeout(5, refuse)


def test_a_call_that_does_not_return() -> None:
    """It is given up, and the failure names the call and the time."""
    released = threading.Event()

    def hang() -> None:
        released.wait(5)

    with pytest.raises(Failed, match=r"^Kafka's client has not come back from hang in 0\.01 s$"):
        with_timeout(0.01, hang)
    released.set()


def test_an_error_that_a_store_answers_with() -> None:
    """It is a loud stop that names the store, and other errors are none of it."""
    said = r"^the store \(sqlite\) answers with IntegrityError\('no room'\)$"
    with pytest.raises(Failed, match=said) as failed, loudly("sqlite"):
        raise sqlite3.IntegrityError("no room")
    with pytest.raises(ZeroDivisionError), loudly(None):
        _ = 1 / 0

    assert failed.value.kind == "storage"


def test_an_error_in_a_callback() -> None:
    """A Kafka error goes to `give_up` and does not leave the callback."""
    given_up = list[KafkaError]()
    seen = list[str]()

    def callback(name: str) -> None:
        if name == "bad":
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        seen.append(name)

    guarded = forward_errors(callback, given_up.append)
    guarded("good")
    guarded("bad")

    assert seen == ["good"]
    assert [error.code() for error in given_up] == [KafkaError._TRANSPORT]


@pytest.mark.parametrize("is_asked", [True, False])
def test_effects(tmp_path: Path, is_asked: bool) -> None:
    """Each output is a line of the file; without the parameter there is no file."""
    parameters = {"effects": 1} if is_asked else {}
    effects = Effects({"parameters": parameters, "durable_dir": str(tmp_path)})

    effects.report(b"a", b"\xff1")
    effects.report(b"b", None)

    file = tmp_path / "effects"
    assert file.exists() == is_asked
    if is_asked:
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        assert lines == [["a", "\\xff1"], ["b", None]]


class Admin:
    """A broker whose leaders learn that they lead one question after the other."""

    def __init__(self, creating: int | None, *answers: int | None) -> None:
        self.creating = creating  # the error of it, if there is one
        self.answers = list(answers)  # the same of each question where a partition ends

    def create_topics(self, new: list[Any]) -> dict[str, Future[None]]:
        """Make a topic."""
        return {each.topic: ended(self.creating) for each in new}

    def list_offsets(self, asked: Mapping[TopicPartition, object]) -> dict[object, Future[None]]:
        """Say where a partition ends."""
        return {place: ended(self.answers.pop(0)) for place in asked}


def ended(code: int | None) -> Future[None]:
    """Return what a client returns that has an answer."""
    future = Future[None]()
    if code is None:
        future.set_result(None)
    else:
        future.set_exception(KafkaException(KafkaError(code)))
    return future


@pytest.mark.parametrize("creating", [None, KafkaError.TOPIC_ALREADY_EXISTS])
@pytest.mark.parametrize(
    "answer",
    [KafkaError._NOENT, KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.UNKNOWN_LEADER_EPOCH],
)
def test_a_new_topic_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, creating: int | None, answer: int
) -> None:
    """It has leaders by its metadata before they know it, or know since when."""
    admin = Admin(creating, None, answer, None, None)
    monkeypatch.setattr(topics, "AdminClient", lambda _: admin)

    topics.make_topic({}, "changelog", 2)

    assert not admin.answers


@pytest.mark.parametrize(
    "admin",
    [
        Admin(KafkaError.TOPIC_AUTHORIZATION_FAILED),
        Admin(None, KafkaError.TOPIC_AUTHORIZATION_FAILED),
    ],
    ids=["made", "read"],
)
def test_a_topic_that_is_denied(monkeypatch: pytest.MonkeyPatch, admin: Admin) -> None:
    """It is not waited for."""
    monkeypatch.setattr(topics, "AdminClient", lambda _: admin)

    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        topics.make_topic({}, "changelog", 2)


def test_a_topic_that_no_leader_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a loud failure in the end."""
    admin = Admin(None, KafkaError.NOT_LEADER_FOR_PARTITION)
    monkeypatch.setattr(topics, "AdminClient", lambda _: admin)
    monkeypatch.setattr(topics, "ANSWER_S", 0)

    with pytest.raises(Failed, match="changelog cannot be read within 0 s"):
        topics.make_topic({}, "changelog", 2)
