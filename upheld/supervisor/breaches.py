"""The sentences that say how an adapter broke the protocol."""

import json
import signal
from typing import Final

from pydantic import ValidationError

from upheld.protocol.messages import REPLIES_TO, Message

ONE_LINE: Final = "Expected one JSON object a line; was it meant for stderr?"


def type_of(message: Message | type[Message]) -> str:
    """Return the name of a message on the wire."""
    return str(message.__pydantic_fields__["type"].default)


def expected(request: Message | None) -> str:
    """Return which replies a request allows."""
    if request is None:
        return "Expected nothing unasked but failed or notice"
    return f"Expected {', '.join(type_of(reply) for reply in REPLIES_TO[type(request)])} or failed"


def garbled(asked: Message | None, line: bytes, shown: str, error: ValidationError) -> str:
    """Return why a line is no message."""
    how = f"answered {type_of(asked)} with" if asked else "said, unasked,"
    try:
        json.loads(line)
    except ValueError:
        return f"{how} a line that is not JSON: {shown}. {ONE_LINE}"
    except RecursionError:
        return f"{how} a line that is nested too deeply: {shown}. {expected(asked)}"
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"][1:])
    why = f"field {field}: {first['msg']}" if field else first["msg"]
    what = f"{how} {shown}, which is no message of the protocol ({why})"
    return f"{what}. {expected(asked)}"


def silent(request: Message, waited_s: float, half: str) -> str:
    """Return how a request stayed unanswered; `half` is a line without an end, if any."""
    if half:
        return (
            f"answered {type_of(request)} with half a line, {half}, "
            f"and then nothing for {waited_s:g} s. Expected every answer to end with a "
            "newline, flushed"
        )
    return f"did not answer {type_of(request)} within {waited_s:g} s. {expected(request)}"


def exited(request: Message, code: int, last_words: str) -> str:
    """Return how a process ended before it answered a request."""
    how = f"died of {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
    words = f"; its last words were {last_words}" if last_words else ""
    return f"{how} before it answered {type_of(request)}{words}. {expected(request)}"
