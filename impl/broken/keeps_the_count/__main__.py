"""Empties a batch when the clock sends it, and goes on counting.

The mistake is to keep count and batch in two stores. It shows where a batch fills up after a flush
by the clock.
"""

from collections import Counter

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Batcher, Plain


class CountsOn(Batcher):
    def take(self, message: Message) -> None:
        self.count = self.__dict__.get("count", Counter())
        super().take(message)
        customer = (message.key() or b"").decode()
        self.count[customer] += message.value() is not None
        if self.count[customer] >= self.parameters["threshold"]:
            self.count[customer] = 0
            self.full += [self.flush(customer)] if customer in self.since else []


class KeepsTheCount(Plain):
    hello = Plain.hello | {"name": "broken/keeps_the_count", "programs": ["batcher"]}
    programs = Plain.programs | {"batcher": CountsOn}


serve(KeepsTheCount())
