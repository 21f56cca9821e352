"""Reads its state back as far as a reader of committed data comes, and takes that for the end.

Whoever reads until there is nothing more makes this mistake. It shows when a dead instance has left a transaction open, and
committed rows of another one stand behind it.
"""

from confluent_kafka import TopicPartition

from streamgate.adapter import serve
from streamgate.impl.plain import Plain


class StopsAtAnOpenTransaction(Plain):
    hello = Plain.hello | {"name": "broken/stops_at_an_open_transaction"}

    def ends(self, partitions: list[TopicPartition]) -> dict[int, int]:
        return {place.partition: 0 for place in partitions}


serve(StopsAtAnOpenTransaction())
