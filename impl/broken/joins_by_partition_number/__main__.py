"""Pairs the partitions of two topics by number, however many each of them has.

Whoever takes co-partitioning for granted makes this mistake. It shows where one topic has more
partitions.
"""

from upheld.adapter import serve
from upheld.impl.plain import Clients, Plain, Row


class ByNumber(Clients):
    def result(self, key: bytes) -> Row | None:
        places = {
            table[key][1].rpartition("@")[0][-1]
            for table in (self.left, self.right)
            if key in table
        }
        return super().result(key) if len(places) == 1 else None


class JoinsByPartitionNumber(Plain):
    hello = Plain.hello | {"name": "broken/joins_by_partition_number", "programs": ["clients"]}
    programs = {"clients": ByNumber}  # noqa: RUF012


serve(JoinsByPartitionNumber())
