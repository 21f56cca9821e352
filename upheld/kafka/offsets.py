"""The OffsetFetch request in version 7 as bytes, and its answer.

It asks for the offsets that a group has committed. It can leave out offsets that a transaction may
change. A row asks this some 60 times. Layout: Kafka protocol guide, "OffsetFetch API". Versions
from 6 on write lengths as varints, plus one, and end every structure with tagged fields.
"""

import struct
from collections.abc import Mapping
from typing import Final, NamedTuple

from upheld.errors import MachineProblem

API_KEY: Final = 9
VERSION: Final = 7
_HEAD = struct.Struct(">hhih")  # API, version, correlation id, length of the client's name
_CORRELATION_BYTES: Final = 4
_THROTTLED_BYTES: Final = 4
_PARTITION = struct.Struct(">iqi")  # partition, offset, leader epoch
_ERROR = struct.Struct(">h")
_UNTAGGED = b"\0"


class Committed(NamedTuple):
    """An answer: the group's error, and the offset and error of each partition.

    An offset of -1 means that there is none.
    """

    error_code: int
    offsets: dict[tuple[str, int], int]
    partition_errors: frozenset[int]


def request(
    correlation_id: int, client: str, group: str, topics: Mapping[str, int], *, stable: bool
) -> bytes:
    """Return a request for a group's offsets in topics (name to partitions).

    If `stable`, the answer has an error where a transaction may change an offset.
    """
    asked_by = client.encode()
    parts = [_HEAD.pack(API_KEY, VERSION, correlation_id, len(asked_by)), asked_by, _UNTAGGED]
    parts += [_text(group), _varint(len(topics) + 1)]
    for topic, partitions in topics.items():
        numbers = struct.pack(f">{partitions}i", *range(partitions))
        parts += [_text(topic), _varint(partitions + 1), numbers, _UNTAGGED]
    parts += [bytes([stable]), _UNTAGGED]
    return b"".join(parts)


def _text(text: str) -> bytes:
    data = text.encode()
    return _varint(len(data) + 1) + data


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def answer(data: bytes) -> Committed:
    """Read an answer from its correlation id on.

    Raises:
        MachineProblem: The bytes are no such answer.
    """
    try:
        at = _after_tags(data, _CORRELATION_BYTES) + _THROTTLED_BYTES
        topics, at = _length(data, at)
        offsets: dict[tuple[str, int], int] = {}
        errors: set[int] = set()
        for _ in range(topics):
            length, at = _length(data, at)
            topic = data[at : at + length].decode()
            partitions, at = _length(data, at + length)
            for _ in range(partitions):
                partition, offset, _ = _PARTITION.unpack_from(data, at)
                length, at = _length(data, at + _PARTITION.size)  # of its metadata
                (error,) = _ERROR.unpack_from(data, at + length)
                at = _after_tags(data, at + length + _ERROR.size)
                offsets[topic, partition] = offset
                if error:
                    errors.add(error)
            at = _after_tags(data, at)
        (error_code,) = _ERROR.unpack_from(data, at)
        _after_tags(data, at + _ERROR.size)
    except (struct.error, IndexError, UnicodeDecodeError):
        raise MachineProblem(
            "the broker answered OffsetFetch with bytes that are no such answer"
        ) from None
    return Committed(error_code, offsets, frozenset(errors))


def _after_tags(data: bytes, at: int) -> int:
    """Return the offset after tagged fields, which no version so far needs."""
    tags = data[at]
    if tags == 0:
        return at + 1
    tags, at = _read_varint(data, at)
    for _ in range(tags):
        _, at = _read_varint(data, at)
        size, at = _read_varint(data, at)
        at += size
    data[at - 1]  # raises IndexError if the answer is cut off
    return at


def _length(data: bytes, at: int) -> tuple[int, int]:
    """Return the length of a value that may be absent, and the offset after the length."""
    length, at = _read_varint(data, at)
    return max(0, length - 1), at


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    number = shift = 0
    while byte >= 0x80:
        number |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        byte = data[at]
    return number | byte << shift, at + 1
