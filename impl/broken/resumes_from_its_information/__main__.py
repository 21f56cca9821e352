"""Goes on from the offsets of its own group, which tell a monitor what was read.

Its checkpoint is another group, whose offsets are in the transaction of the outputs. The mistake is
to take the information for it. It shows where the process dies before the outputs are visible.
"""

from confluent_kafka import Consumer, TopicPartition

from upheld.adapter import serve
from upheld.impl.plain import OutputRecord, Plain


class ResumesFromItsInformation(Plain):
    hello = Plain.hello | {
        "name": "broken/resumes_from_its_information",
        "programs": ["relay", "ledger"],
        "modes": ["exactly_once"],
    }

    def on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        super().on_assign(consumer, partitions)
        self.checkpoint = Consumer(self.client | {"group.id": self.group + "-checkpoint"})
        self.committed = consumer.committed(partitions, 30)
        consumer.assign(
            [TopicPartition(p.topic, p.partition, max(0, p.offset)) for p in self.committed]
        )

    def send(self, rows: list[OutputRecord]) -> None:
        if rows:
            self.consumer.commit(offsets=self.positions(), asynchronous=False)
        super().send(rows)

    def membership(self) -> object:
        return self.checkpoint.consumer_group_metadata()


serve(ResumesFromItsInformation())
