"""Sends on while a refused batch waits to be sent again.

The broker gets no numbers to put batches in order by. The mistake is to turn idempotence off, and
to leave several requests under way. It shows where one request is refused once.
"""

from typing import Any

from confluent_kafka import Producer

from upheld.adapter import serve
from upheld.impl.plain import Plain


class LetsOthersOvertake(Plain):
    hello = Plain.hello | {"name": "broken/lets_others_overtake", "modes": ["at_least_once"]}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        answer = super().open(start)
        small = {"partitioner": "murmur2_random", "linger.ms": 5, "batch.num.messages": 20}
        self.producer = Producer(self.client | small)
        return answer


serve(LetsOthersOvertake())
