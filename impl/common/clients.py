"""Guards for calls into librdkafka, and for the callbacks that it calls.

librdkafka 2.16 can wait without end in `send_offsets_to_transaction`, whatever its timeout (its
issue 5456). It waits for a group coordinator that it has lost: a broker that restarts in the middle
of a transaction is enough.

A broker accepts any sequence number as the first one of a producer in a partition. Say that the
first batch is refused while a second one is under way. The second batch is then taken for the
first. When the first batch is sent again, the broker takes it for a repetition: it acknowledges the
batch and loses it.
"""

import threading
from collections.abc import Callable
from typing import Final, ParamSpec

from confluent_kafka import KafkaError, KafkaException

from upheld.adapter import Failed

# The right that a client lacks, by the error of the broker that says so.
RIGHTS: Final = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "READ of an input or WRITE of an output",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "READ of the consumer group",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "WRITE of the transactional id",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "IDEMPOTENT_WRITE of the cluster",
}
# The errors of a broker that takes a record at no try.
REFUSALS: Final = {
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.RECORD_LIST_TOO_LARGE,
    KafkaError.INVALID_RECORD,
    KafkaError.INVALID_TIMESTAMP,
}
ONE_IN_FLIGHT: Final = {"max.in.flight.requests.per.connection": 1}

P = ParamSpec("P")


def failure_of(error: KafkaError, output: str, message: str) -> Failed:
    """Return the loud stop after an error of Kafka's that is no fencing.

    Args:
        error: What the client or the broker said.
        output: The topic of the outputs, which may be what does not take one.
        message: The text of the loud stop.
    """
    if right := RIGHTS.get(error.code()):
        return Failed("denied", message, right=right)
    if error.code() in REFUSALS:
        return Failed("refused", message, output=output)
    return Failed("storage", message)


def with_timeout(
    within_s: float, call: Callable[P, object], *args: P.args, **kwargs: P.kwargs
) -> None:
    """Call it on a thread, and wait for its return.

    A producer that is stuck is of no further use. So the design stops loudly if the call does not
    return in time.

    Raises:
        Failed: The call has not returned within `within_s` seconds.
        BaseException: Whatever the call raised.
    """
    over = threading.Event()
    raised = list[BaseException]()

    def go() -> None:
        try:
            call(*args, **kwargs)
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


def forward_errors(
    callback: Callable[P, object], give_up: Callable[[KafkaError], object]
) -> Callable[P, None]:
    """Wrap a librdkafka callback so that its Kafka errors go to `give_up`.

    The client would pass an exception of a callback on as an error that no `except` catches.
    """

    def call(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            callback(*args, **kwargs)
        except KafkaException as error:
            give_up(error.args[0])

    return call
