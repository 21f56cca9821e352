"""A control record, which shows how fast the broker is without a design."""

import time
from typing import Final

from confluent_kafka import Consumer, Producer, TopicPartition

from upheld.kafka.clients import Settings

READ_S: Final = 30.0
POLL_S: Final = 0.5


class Canary:
    """A producer and a read_committed consumer on a topic of their own."""

    def __init__(self, settings: Settings, consumer: Consumer, topic: str) -> None:
        self._producer = Producer(settings | {"enable.idempotence": True, "linger.ms": 0})
        self._consumer = consumer
        self._topic = topic
        consumer.assign([TopicPartition(topic, 0, 0)])

    def delay_ms(self) -> int:
        """Return the milliseconds from the produce of a record until the consumer has it."""
        began = time.monotonic()
        token = str(time.monotonic_ns()).encode()
        self._producer.produce(self._topic, token)
        self._producer.poll(0)
        while time.monotonic() - began < READ_S:
            message = self._consumer.poll(POLL_S)
            if message is not None and not message.error() and message.value() == token:
                break
        return round((time.monotonic() - began) * 1000)

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()
