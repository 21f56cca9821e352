"""Keeps its positions in a checkpoint.

The checkpoint is offsets of another group, in the transaction of the outputs. The offsets of the
design's own group tell a monitor what was read. They come before the outputs.
"""

from confluent_kafka import Consumer, Message, TopicPartition

from upheld.adapter import serve
from upheld.impl.plain import Plain


class KeepsItsPositionsInACheckpoint(Plain):
    hello = Plain.hello | {
        "name": "keeps_its_positions_in_a_checkpoint",
        "programs": ["relay", "ledger"],
        "modes": ["exactly_once"],
    }

    def on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        super().on_assign(consumer, partitions)
        self.checkpoint = Consumer(self.client | {"group.id": self.group + "-checkpoint"})
        self.committed = self.checkpoint.committed(partitions, 30)
        consumer.assign(
            [TopicPartition(p.topic, p.partition, max(0, p.offset)) for p in self.committed]
        )

    def process(self, messages: list[Message]) -> None:
        super().process(messages)
        if messages:
            self.consumer.commit(offsets=self.positions(), asynchronous=False)

    def membership(self) -> object:
        return self.checkpoint.consumer_group_metadata()


serve(KeepsItsPositionsInACheckpoint())
