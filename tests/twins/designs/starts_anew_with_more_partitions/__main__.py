"""Stops loudly when its input has got partitions.

The design reads all of them after its next start.
"""

from typing import Any

from confluent_kafka import Consumer, TopicPartition

from upheld.adapter import Failed, serve
from upheld.impl.plain import Plain


class StartsAnewWithMorePartitions(Plain):
    hello = Plain.hello | {"name": "starts_anew_with_more_partitions"}
    known = 0

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        self.known = 0
        return super().open(start)

    def on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if 0 < self.known < len(partitions):
            raise Failed("conflict", f"{len(partitions)} partitions, and {self.known} before")
        self.known = len(partitions)
        super().on_assign(consumer, partitions)


serve(StartsAnewWithMorePartitions())
