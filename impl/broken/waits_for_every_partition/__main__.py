"""Begins when every partition has had a record.

The mistake is to merge partitions by time. It shows where one partition has nothing.
"""

from typing import Any

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Plain


class WaitsForEveryPartition(Plain):
    hello = Plain.hello | {"name": "broken/waits_for_every_partition"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        self.waiting = list[Message]()
        self.spoken = set[tuple[str | None, int | None]]()
        return super().open(start)

    def process(self, messages: list[Message]) -> None:
        self.waiting += messages
        self.spoken |= {(m.topic(), m.partition()) for m in messages}
        if len(self.spoken) >= len(self.consumer.assignment()):
            super().process(self.waiting)
            self.waiting = []

    def commit(self) -> None:
        if not self.waiting:
            super().commit()


serve(WaitsForEveryPartition())
