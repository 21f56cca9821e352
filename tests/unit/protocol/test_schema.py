"""The published schema holds every request and every reply, with its fields."""

import json

import pytest
from pydantic import ValidationError

from upheld.protocol.messages import REPLIES_TO, REPLY, Failed, Message, Notice
from upheld.protocol.schema import schema


def test_schema_holds_every_message() -> None:
    """Each request and each reply is defined.

    Each request lists the replies that it may have.
    """
    published = json.loads(json.dumps(schema()))
    requests = {request.__name__ for request in REPLIES_TO}
    replies = {reply.__name__ for replies in REPLIES_TO.values() for reply in replies} | {
        Failed.__name__,
        Notice.__name__,
    }

    assert set(published["request"]["$defs"]) == requests
    assert set(published["reply"]["$defs"]) == replies
    assert published["replies_to"]["hello"] == ["hello", "failed"]
    assert published["unasked"] == ["failed", "notice"]
    assert len(published["replies_to"]) == len(requests)


def test_every_message_is_explained() -> None:
    """The schema is the documentation, so every message carries its docstring."""
    published = schema()
    every = published["request"]["$defs"] | published["reply"]["$defs"]

    assert [
        name for name, message in every.items() if message["description"] == Message.__doc__
    ] == []


@pytest.mark.parametrize(
    "said",
    [
        {"type": "failed", "kind": "denied", "message": "no"},
        {"type": "failed", "kind": "refused", "message": "no"},
        {"type": "notice", "kind": "offset-reset", "topic": "t", "partition": 0, "to": 1},
        {"type": "notice", "kind": "recovered", "begin": 1},
    ],
)
def test_what_says_too_little(said: dict[str, object]) -> None:
    """`denied` names the right, `refused` the output, and a reset both its positions."""
    with pytest.raises(ValidationError):
        REPLY.validate_python(said)


def test_a_notice_of_recovery_needs_no_place() -> None:
    """An engine that began again inside its process may not know its positions."""
    said = REPLY.validate_python({"type": "notice", "kind": "recovered"})

    assert isinstance(said, Notice)
    assert (said.kind, said.topic, said.begin) == ("recovered", None, None)
