"""Calls into a client that may never return, though they are given a time, and calls out of it that
may raise.

librdkafka 2.16 waits for ever in `send_offsets_to_transaction` for a group coordinator that it has
lost, whatever its timeout (its issue 5456): a broker that restarts in the middle of a transaction
is enough.

A broker takes whatever sequence number a producer begins a partition with. Where its first batch
there is refused and a second is under way, the second is taken for the first, and the first one's
return for a repetition: it is acknowledged and lost.
"""

import threading
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from upheld.adapter import Failed

ONE_UNDER_WAY = {"max.in.flight.requests.per.connection": 1}


def answered(within_s: float, call: Callable[..., Any], *arguments: Any) -> None:
    """Call it; a loud stop where it does not return in time, since a producer that is stuck is of
    no further use.
    """
    over, raised = threading.Event(), list[BaseException]()

    def go() -> None:
        try:
            call(*arguments)
        except BaseException as error:  # noqa: BLE001 - it is raised again where it is waited for
            raised.append(error)
        over.set()

    threading.Thread(target=go, name=call.__name__, daemon=True).start()
    if not over.wait(within_s):
        raise Failed(
            "storage", f"Kafka's client has not come back from {call.__name__} in {within_s:g} s"
        )
    if raised:
        raise raised[0]


def heard(
    callback: Callable[..., None], give_up: Callable[[KafkaError], object]
) -> Callable[..., None]:
    """A callback after whose errors the caller gives up: the client would pass them on as what is
    no exception, to be caught by nobody."""

    def call(*arguments: Any) -> None:
        try:
            callback(*arguments)
        except KafkaException as error:
            give_up(error.args[0])

    return call
