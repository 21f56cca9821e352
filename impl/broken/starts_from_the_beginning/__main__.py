"""Plays its whole input again on every start, whatever was committed.

The mistake is to call seekToBeginning to be safe. It shows where a relay is killed after a commit.
"""

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from upheld.adapter import serve
from upheld.impl.plain import Plain


class StartsFromTheBeginning(Plain):
    hello = Plain.hello | {"name": "broken/starts_from_the_beginning"}

    def on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        super().on_assign(consumer, partitions)
        consumer.assign(
            [TopicPartition(p.topic, p.partition, OFFSET_BEGINNING) for p in partitions]
        )


serve(StartsFromTheBeginning())
