"""Looks at the count of a batch after all records of a read.

The mistake is to count per read and not per event. It shows where one read brings more than fills a
batch.
"""

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Batcher, OutputRecord, Plain


class PerRead(Batcher):
    def take(self, message: Message) -> None:
        threshold = self.parameters["threshold"]
        self.parameters = self.parameters | {"threshold": 1 << 30}
        super().take(message)
        self.parameters |= {"threshold": threshold}

    def changed(self) -> list[OutputRecord]:
        full = [
            customer
            for customer, events in self.batches.items()
            if len(events) >= self.parameters["threshold"]
        ]
        return [self.flush(customer) for customer in full] + super().changed()


class FillsBeyondTheThreshold(Plain):
    hello = Plain.hello | {"name": "broken/fills_beyond_the_threshold", "programs": ["batcher"]}
    programs = Plain.programs | {"batcher": PerRead}


serve(FillsBeyondTheThreshold())
