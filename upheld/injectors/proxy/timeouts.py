"""Timeouts that clients ask a coordinator for, seen and shortened on their way.

An application as it is deployed may have a session of 45 s, and transactions of a minute. A row
would wait for that after each kill. The proxy puts a shorter time in its place. It never puts a
longer one, and leaves the rebalance timeout: that one bounds the work on one batch.
"""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from kio.static.primitive import i32Timedelta

from upheld.injectors.proxy.frames import Request, encode, parse


class Timeout(StrEnum):
    """A timeout that a client asks for."""

    SESSION = "session timeout"
    TRANSACTION = "transaction timeout"


# API -> the timeout that its request asks for, and the field that holds it
ASKED_BY: Final = {
    "join_group": (Timeout.SESSION, "session_timeout"),
    "init_producer_id": (Timeout.TRANSACTION, "transaction_timeout"),
}


@dataclass
class Timeouts:
    """The timeouts at one door: the longest that pass, and those that were seen.

    All are milliseconds. A timeout without a limit passes as it is. `asked` has the longest that a
    client asked for, and `given` the one that the broker got in its place.
    """

    most: dict[Timeout, int] = field(default_factory=dict)
    asked: dict[Timeout, int] = field(default_factory=dict)
    given: dict[Timeout, int] = field(default_factory=dict)

    def passed(self, request: Request) -> Request:
        """Note the timeout of a request, and return the request as it is to pass."""
        if request.api not in ASKED_BY:
            return request
        timeout, name = ASKED_BY[request.api]
        message: Any = request.decoded()
        if timeout is Timeout.TRANSACTION and not message.transactional_id:
            return request
        asked_ms = round(getattr(message, name).total_seconds() * 1000)
        given_ms = min(asked_ms, self.most.get(timeout, asked_ms))
        if asked_ms >= self.asked.get(timeout, 0):
            self.asked[timeout] = asked_ms
            self.given[timeout] = given_ms
        if given_ms == asked_ms:
            return request
        shorter = i32Timedelta.parse(timedelta(milliseconds=given_ms))
        return _with_message(request, replace(message, **{name: shorter}))


def _with_message(request: Request, message: Any) -> Request:
    """Return a request with another message behind the same header."""
    header, _ = request.header()
    return parse(encode(header, message))
