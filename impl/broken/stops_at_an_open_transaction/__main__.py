"""Reads its state back as far as a reader of committed data comes.

The mistake is to take that for the end. It shows when a dead instance has left a transaction open,
and committed rows of another one stand behind it.
"""

from confluent_kafka import Consumer, Message, TopicPartition

from upheld.adapter import serve
from upheld.impl.plain import Plain


class StopsAtAnOpenTransaction(Plain):
    hello = Plain.hello | {"name": "broken/stops_at_an_open_transaction"}

    def on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.committed = []  # it may have to be waited for until the transaction is aborted
        self.read = {
            role: super(StopsAtAnOpenTransaction, self).table(role) for role in self.program.tables
        }
        super().on_assign(consumer, partitions)

    def table(self, role: str) -> list[Message]:
        return self.read[role]

    def ends(self, partitions: list[TopicPartition]) -> dict[int, int]:
        return {place.partition: 0 for place in partitions}


serve(StopsAtAnOpenTransaction())
