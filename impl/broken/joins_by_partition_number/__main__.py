"""Pairs the partitions of two topics by number, however many there are.

The mistake is to take co-partitioning for granted. It shows where one topic has more partitions.
"""

from upheld.adapter import serve
from upheld.impl.plain import Clients, OutputRecord, Plain


class ByNumber(Clients):
    def result(self, key: bytes) -> OutputRecord | None:
        places = {
            table[key].place.rpartition("@")[0][-1]
            for table in (self.left, self.right)
            if key in table
        }
        return super().result(key) if len(places) == 1 else None


class JoinsByPartitionNumber(Plain):
    hello = Plain.hello | {"name": "broken/joins_by_partition_number", "programs": ["clients"]}
    programs = Plain.programs | {"clients": ByNumber}


serve(JoinsByPartitionNumber())
