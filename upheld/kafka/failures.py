"""Failures of the Kafka client that the harness itself uses."""

from confluent_kafka import KafkaException

from upheld.errors import is_interrupt
from upheld.verdicts import ClientFailed


def foreseen(error: BaseException) -> BaseException:
    """Return what ended an attempt: ClientFailed if the harness's own client failed.

    Where a call into librdkafka ends without a result and without an exception, Python raises a
    SystemError: `flush` returned NULL without setting an exception. No design takes part in it.
    """
    is_client = isinstance(error, KafkaException) or (
        isinstance(error, SystemError) and not is_interrupt(error)
    )
    if not is_client:
        return error
    failed = ClientFailed.of(error)
    failed.__cause__ = error
    return failed
