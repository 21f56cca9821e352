"""Commits when records have come, and never for the markers after them.

The mistake is to take the offset after the last record for the end of the log. It shows where an
aborted transaction is the last thing in a partition. The lag never reaches zero, though nothing is
left to do.
"""

from confluent_kafka import KafkaError, Message

from upheld.adapter import serve
from upheld.impl.plain import Plain


class StaysBeforeTheMarkers(Plain):
    hello = Plain.hello | {"name": "broken/stays_before_the_markers"}

    def is_end(self, message: Message) -> bool:
        error = message.error()
        return error is not None and error.code() == KafkaError._PARTITION_EOF


serve(StaysBeforeTheMarkers())
