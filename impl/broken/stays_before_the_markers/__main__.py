"""Commits when records have come, and never for the markers behind them.

Whoever takes it that the offset after the last record is the end of the log makes this mistake. It
shows where a transaction that was aborted is the last thing in a partition: the lag never reaches
zero, though nothing is left to do.
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
