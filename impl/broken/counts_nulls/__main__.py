"""Leaves a null out of the batch, and counts it.

The mistake is to count before filtering. It shows where a null stands among events that fill a
batch.
"""

from collections import Counter

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Batcher, Plain


class WithNulls(Batcher):
    def take(self, message: Message) -> None:
        self.nulls = self.__dict__.get("nulls", Counter())
        super().take(message)
        customer = (message.key() or b"").decode()
        self.nulls[customer] += message.value() is None
        if (
            len(self.batches.get(customer, ())) + self.nulls[customer]
            >= self.parameters["threshold"]
        ):
            self.nulls[customer] = 0
            self.full.append(self.flush(customer))


class CountsNulls(Plain):
    hello = Plain.hello | {"name": "broken/counts_nulls", "programs": ["batcher"]}
    programs = Plain.programs | {"batcher": WithNulls}


serve(CountsNulls())
