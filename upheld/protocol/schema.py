"""The wire format as JSON Schema, for designs in any language; what `upheld schema` prints."""

from typing import Any

from upheld.protocol.messages import PROTOCOL_VERSION, REPLIES_TO, REPLY, REQUEST


def schema() -> dict[str, Any]:
    """One document: the schema of a request, that of a reply, and which replies each request may
    have.
    """
    return {
        "title": "The adapter protocol of upheld",
        "description": "One JSON object a line: requests on standard input, replies on standard output.",
        "protocol": PROTOCOL_VERSION,
        "request": REQUEST.json_schema(),
        "reply": REPLY.json_schema(),
        "replies_to": {
            _name(request): [*map(_name, replies), "failed"]
            for request, replies in REPLIES_TO.items()
        },
    }


def _name(message: type[Any]) -> str:
    return str(message.model_fields["type"].default)
