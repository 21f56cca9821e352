"""Reads a record again that it cannot read, until it can.

The mistake is to take every failure for one that passes. It shows wherever a record cannot be read.
"""

from confluent_kafka import Message, TopicPartition

from upheld.adapter import Failed, serve
from upheld.impl.plain import Plain


class TriesAgainUntilItCanBeRead(Plain):
    hello = Plain.hello | {"name": "broken/tries_again_until_it_can_be_read"}

    def set_aside(self, message: Message, failure: Failed) -> None:
        self.consumer.seek(
            TopicPartition(message.topic() or "", message.partition() or 0, message.offset() or 0)
        )


serve(TriesAgainUntilItCanBeRead())
