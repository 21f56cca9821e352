"""Sends everything once, and takes no notice of what was not acknowledged.

The mistake is to turn retries off to be rid of duplicates, without a look at the outcome. It shows
where a request is lost on its way.
"""

from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from upheld.adapter import serve
from upheld.impl.plain import Plain


class MakesNoSecondTry(Plain):
    hello = Plain.hello | {"name": "broken/makes_no_second_try", "modes": ["at_least_once"]}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        answer = super().open(start)
        self.producer = Producer(
            self.client | {"partitioner": "murmur2_random", "linger.ms": 5, "retries": 0}
        )
        return answer

    def delivered(self, error: KafkaError | None, _: Message) -> None:
        pass


serve(MakesNoSecondTry())
