"""The wire format as JSON Schema, for designs in any language: `upheld schema`."""

from collections.abc import Mapping

from upheld.protocol.messages import (
    PROTOCOL_VERSION,
    REPLIES_TO,
    REPLY,
    REQUEST,
    Failed,
    Message,
    Notice,
)


def schema() -> Mapping[str, object]:
    """Return the schemas of requests and replies, and the replies to each request."""
    return {
        "title": "The adapter protocol of upheld",
        "description": (
            "One JSON object a line: requests on standard input, replies on standard output."
        ),
        "protocol": PROTOCOL_VERSION,
        "request": REQUEST.json_schema(),
        "reply": REPLY.json_schema(),
        "unasked": [_name(Failed), _name(Notice)],
        "replies_to": {
            _name(request): [*map(_name, replies), "failed"]
            for request, replies in REPLIES_TO.items()
        },
    }


def _name(message: type[Message]) -> str:
    return str(message.model_fields["type"].default)
