"""The Fetch request in version 11 as bytes, and its answer.

Of an answer only the ends and the records are read. A run asks this tens of thousands of times. A
general reader of the protocol takes five times as long, most of it for fields that nothing uses.
Layout: Kafka protocol guide, "Fetch API".
"""

import struct
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from upheld.errors import MachineProblem

API_KEY: Final = 1
VERSION: Final = 11
_NODES_ALONE = -1  # the replica id of a client
_LARGEST_ANSWER = 0x7FFFFFFF
_HEAD = struct.Struct(">hhih")  # API, version, correlation id, length of the client's name
# Replica id, max wait, min bytes, max bytes, isolation, session id, session epoch, topics, length
# of the topic's name.
_REQUEST = struct.Struct(">iiiibiiih")
_COUNT = struct.Struct(">i")
_PARTITION = struct.Struct(">iiqqi")  # partition, leader epoch, offset, log start, max bytes
_TAIL = struct.Struct(">ih")  # forgotten topics, length of the rack's name
_ANSWER = struct.Struct(">ihii")  # throttled, error, session id, topics
_LENGTH = struct.Struct(">h")
# Partition, error, high watermark, last stable, log start, aborted transactions.
_OF_PARTITION = struct.Struct(">ihqqqi")
_ABORTED_BYTES = 16  # producer id and first offset
_RECORDS = struct.Struct(">ii")  # preferred replica, length of the records


class Fetched(NamedTuple):
    """The answer for one partition."""

    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    records: bytes


def request(
    correlation_id: int, client: str, topic: str, offsets: Mapping[int, int], max_bytes: int
) -> bytes:
    """Return a request for what lies at these offsets, decided or not, without a wait."""
    named = topic.encode()
    asked_by = client.encode()
    parts = [
        _HEAD.pack(API_KEY, VERSION, correlation_id, len(asked_by)),
        asked_by,
        _REQUEST.pack(_NODES_ALONE, 0, 0, _LARGEST_ANSWER, 0, 0, -1, 1, len(named)),
        named,
        _COUNT.pack(len(offsets)),
        *(
            _PARTITION.pack(partition, -1, offset, -1, max_bytes)
            for partition, offset in offsets.items()
        ),
        _TAIL.pack(0, 0),
    ]
    return b"".join(parts)


def answer(data: bytes) -> dict[int, Fetched]:
    """Read an answer after its correlation id; return it by partition.

    Raises:
        MachineProblem: The bytes are no such answer.
    """
    try:
        return {fetched.partition: fetched for fetched in _partitions(data)}
    except struct.error:
        raise MachineProblem(
            "the broker answered Fetch with bytes that are no such answer"
        ) from None


def _partitions(data: bytes) -> Iterator[Fetched]:
    *_, topics = _ANSWER.unpack_from(data)
    at = _ANSWER.size
    for _ in range(topics):
        at += _LENGTH.size + _LENGTH.unpack_from(data, at)[0]
        (partitions,) = _COUNT.unpack_from(data, at)
        at += _COUNT.size
        for _ in range(partitions):
            partition, error_code, high_watermark, stable, _, aborted = _OF_PARTITION.unpack_from(
                data, at
            )
            at += _OF_PARTITION.size + max(0, aborted) * _ABORTED_BYTES
            _, length = _RECORDS.unpack_from(data, at)
            at += _RECORDS.size
            end = at + max(0, length)
            if end > len(data):
                raise struct.error
            yield Fetched(partition, error_code, high_watermark, stable, data[at:end])
            at = end
