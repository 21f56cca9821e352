"""Loads the state when it starts, and not when it is assigned partitions.

It goes on with what it knows then. The mistake is to load state at the start alone. It shows when a
partition comes back from another instance.
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
