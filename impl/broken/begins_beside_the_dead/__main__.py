"""Makes its ids unique, and reads offsets whatever is pending.

The mistake is to fence no predecessor. It shows when the commit of a dead instance is late.
"""

from typing import Any
from uuid import uuid4

from confluent_kafka import Consumer, TopicPartition

from upheld.adapter import serve
from upheld.impl.plain import Plain


class BeginsBesideTheDead(Plain):
    hello = Plain.hello | {
        "name": "broken/begins_beside_the_dead",
        "programs": ["relay"],
        "modes": ["exactly_once"],
    }

    def transactional_id(self) -> str:
        return f"{super().transactional_id()}-{self.life}"

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        self.life = uuid4().hex
        return super().open(start)

    def on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        loose = self.client | {"group.id": self.group, "isolation.level": "read_uncommitted"}
        super().on_assign(Consumer(loose), partitions)
        consumer.assign(
            [TopicPartition(p.topic, p.partition, max(0, p.offset)) for p in self.committed]
        )


serve(BeginsBesideTheDead())
