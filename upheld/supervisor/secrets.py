"""The secrets of a start request, which no log and no message may show."""

from typing import Final

from upheld.masking import KNOWN
from upheld.protocol.messages import Error, Failed, Message, Notice, Start, Unsupported

SHOWN_CHARS: Final = 160


def learn(request: Start) -> None:
    """Learn the secrets among a request's client settings and store addresses."""
    KNOWN.learn_all(request.client)
    KNOWN.learn_all(request.stores)


def masked(message: Message) -> Message:
    """Return a message with the secrets in its prose masked.

    An error may quote the settings. Names and values are left alone, since a verdict rests on them.
    """
    match message:
        case Failed() | Error() | Notice():
            return message.model_copy(update={"message": KNOWN.masked(message.message)})
        case Unsupported():
            return message.model_copy(update={"reason": KNOWN.masked(message.reason)})
        case _:
            return message


def shown(line: bytes) -> str:
    """Return a line of a design, masked, escaped and shortened, for a message."""
    text = KNOWN.masked_bytes(line).decode(errors="replace")
    return repr(text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "…")
