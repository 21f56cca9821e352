"""Looks for a ticker where librdkafka's default partitioner would have put it.

The mistake is to take the partitioner of one's own client for that of all. It shows in the rows
that have no partner, though it is there.
"""

from zlib import crc32

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Holdings, Plain

PARTITIONS = 4  # of `tickers`, where no line says otherwise


class Looked(Holdings):
    def take(self, message: Message) -> None:
        hashed = crc32(bytes(message.key() or b""))
        is_ticker = str(message.topic()).endswith("tickers")
        if not is_ticker or message.partition() == hashed % PARTITIONS:
            super().take(message)


class LooksWhereAnotherPartitionerSays(Plain):
    hello = Plain.hello | {"name": "broken/looks_where_another_partitioner_says"}
    programs = Plain.programs | {"holdings": Looked}


serve(LooksWhereAnotherPartitionerSays())
