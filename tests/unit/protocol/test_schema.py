"""The published schema holds every request and every reply, with its fields."""

import json

from upheld.protocol.messages import REPLIES_TO, Failed, Message
from upheld.protocol.schema import schema


def test_schema_holds_every_message() -> None:
    """Each request and each reply is defined.

    Each request lists the replies that it may have.
    """
    published = json.loads(json.dumps(schema()))
    requests = {request.__name__ for request in REPLIES_TO}
    replies = {reply.__name__ for replies in REPLIES_TO.values() for reply in replies} | {
        Failed.__name__
    }

    assert set(published["request"]["$defs"]) == requests
    assert set(published["reply"]["$defs"]) == replies
    assert published["replies_to"]["hello"] == ["hello", "failed"]
    assert len(published["replies_to"]) == len(requests)


def test_every_message_is_explained() -> None:
    """The schema is the documentation, so every message carries its docstring."""
    published = schema()
    every = published["request"]["$defs"] | published["reply"]["$defs"]

    assert [
        name for name, message in every.items() if message["description"] == Message.__doc__
    ] == []
