"""Looks for a ticker in one partition: where Kafka's default partitioner puts it."""

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Holdings, Plain

PARTITIONS = 4  # of `tickers`, where no line says otherwise


def murmur2(key: bytes) -> int:
    """Return the hash of a key, without its sign."""
    found, mix, mask = 0x9747B28C ^ len(key), 0x5BD1E995, 0xFFFFFFFF
    whole = len(key) // 4 * 4
    for at in range(0, whole, 4):
        word = int.from_bytes(key[at : at + 4], "little") * mix & mask
        word = (word ^ word >> 24) * mix & mask
        found = found * mix & mask ^ word
    if rest := key[whole:]:
        found = (found ^ int.from_bytes(rest, "little")) * mix & mask
    found = (found ^ found >> 13) * mix & mask
    return (found ^ found >> 15) & 0x7FFFFFFF


class Looked(Holdings):
    def take(self, message: Message) -> None:
        hashed = murmur2(bytes(message.key() or b""))
        is_ticker = str(message.topic()).endswith("tickers")
        if not is_ticker or message.partition() == hashed % PARTITIONS:
            super().take(message)


class LooksWhereThePartitionerSays(Plain):
    hello = Plain.hello | {"name": "looks_where_the_partitioner_says"}
    programs = Plain.programs | {"holdings": Looked}


serve(LooksWhereThePartitionerSays())
