"""Loads the state when it starts, and goes on with what it knows when it is assigned partitions
later.

Whoever loads state at the start alone makes this mistake. It shows when a partition comes back from
another instance.
"""

from confluent_kafka import Consumer, TopicPartition

from upheld.adapter import serve
from upheld.impl.plain import Plain


class KeepsItsStateOverARebalance(Plain):
    hello = Plain.hello | {"name": "broken/keeps_its_state_over_a_rebalance"}

    def on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        known = self.program if self.assigned else None
        super().on_assign(consumer, partitions)
        self.program = known or self.program


serve(KeepsItsStateOverARebalance())
