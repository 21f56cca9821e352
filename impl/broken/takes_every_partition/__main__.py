"""Joins the group, and reads every partition whatever it was assigned.

The mistake is to assign partitions by hand in a group. It shows when there are two instances.
"""

import threading

from confluent_kafka import Consumer, TopicPartition

from upheld.adapter import serve
from upheld.impl.plain import Plain


class TakesEveryPartition(Plain):
    hello = Plain.hello | {"name": "broken/takes_every_partition"}

    def on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        topic = self.start["topics"][self.program.reads[0]]
        everything = [
            TopicPartition(topic, p)
            for p in consumer.list_topics(topic, 10).topics[topic].partitions
        ]
        super().on_assign(consumer, everything)
        consumer.assign(everything)

    def run(self, stopping: threading.Event) -> None:
        self.start["parameters"]["commit_interval_ms"] = (
            50  # by turns with the others, on a slow machine too
        )
        super().run(stopping)


serve(TakesEveryPartition())
