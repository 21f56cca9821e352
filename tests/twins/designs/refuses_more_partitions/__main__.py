"""Stops loudly when its input has got partitions, and refuses to start on them.

Its state belongs to partitions, so an operator has to move it first.
"""

from confluent_kafka import Consumer, TopicPartition

from upheld.adapter import Failed, serve
from upheld.impl.plain import Plain


class RefusesMorePartitions(Plain):
    hello = Plain.hello | {"name": "refuses_more_partitions"}

    def on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        places = consumer.committed(partitions, 30)
        if 0 < len([place for place in places if place.offset < 0]) < len(places):
            raise Failed("conflict", "the input has got partitions since the last commit")
        super().on_assign(consumer, partitions)


serve(RefusesMorePartitions())
