"""Sends again what was not acknowledged, under no number to know it by.

The mistake is to turn idempotence off for a little speed. It shows where an acknowledgement is
lost: the records stand there twice, with no crash and no restart.
"""

from typing import Any

from confluent_kafka import Producer

from upheld.adapter import serve
from upheld.impl.plain import Plain


class TriesAgainWithoutASequence(Plain):
    hello = Plain.hello | {
        "name": "broken/tries_again_without_a_sequence",
        "modes": ["at_least_once"],
    }

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        answer = super().open(start)
        settings = {"partitioner": "murmur2_random", "linger.ms": 5, "socket.timeout.ms": 10_000}
        self.producer = Producer(self.client | settings)
        return answer


serve(TriesAgainWithoutASequence())
