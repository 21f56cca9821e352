"""Sends every other output through a second producer.

One producer still holds what the other has passed. The mistake is to share the work of sending
among threads. It shows where a key has many outputs.
"""

from typing import Any

from confluent_kafka import Producer

from upheld.adapter import serve
from upheld.impl.plain import OutputRecord, Plain


class SendsThroughTwoProducers(Plain):
    hello = Plain.hello | {"name": "broken/sends_through_two_producers", "modes": ["at_least_once"]}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        ready = super().open(start)
        self.other = Producer(self.client | {"partitioner": "murmur2_random", "linger.ms": 50})
        return ready

    def send(self, rows: list[OutputRecord]) -> None:
        for half in (rows[::2], rows[1::2]):
            super().send(half)
            self.producer, self.other = self.other, self.producer
        self.other.flush(30)


serve(SendsThroughTwoProducers())
