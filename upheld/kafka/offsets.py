"""The OffsetFetch request in version 7 as bytes: which offsets a group has committed, unless a
transaction may change them.

A row asks this some 60 times. Layout: Kafka protocol guide, "OffsetFetch API"; versions from 6 on
write lengths as varints, plus one, and end every structure with tagged fields.
"""

import struct
from collections.abc import Mapping
from typing import NamedTuple

from upheld.errors import MachineProblem

API_KEY, VERSION = 9, 7
_HEAD = struct.Struct(">hhih")  # API, version, correlation id, length of the client's name
_CORRELATION_BYTES = _THROTTLED_BYTES = 4
_PARTITION = struct.Struct(">iqi")  # partition, offset, leader epoch
_ERROR = struct.Struct(">h")
_UNTAGGED = b"\0"


class Committed(NamedTuple):
    """What an answer says: an error of the whole group, and of each partition its offset (-1: none)
    and error.
    """

    error_code: int
    offsets: dict[tuple[str, int], int]
    partition_errors: frozenset[int]


def request(
    correlation_id: int, client: str, group: str, topics: Mapping[str, int], *, stable: bool
) -> bytes:
    """Ask for a group's offsets in topics (name -> partitions); `stable`: with an error where a
    transaction may change one.
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
    """Read an answer from its correlation id on. Raises MachineProblem where it is none."""
    try:
        at = _after_tags(data, _CORRELATION_BYTES) + _THROTTLED_BYTES
        topics, at = _length(data, at)
        offsets, errors = dict[tuple[str, int], int](), set[int]()
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
    """Pass over tagged fields, which no version so far needs."""
    tags = data[at]
    if tags == 0:
        return at + 1
    tags, at = _read_varint(data, at)
    for _ in range(tags):
        _, at = _read_varint(data, at)
        size, at = _read_varint(data, at)
        at += size
    data[at - 1]  # which is there, unless the answer is cut
    return at


def _length(data: bytes, at: int) -> tuple[int, int]:
    """Read the length of something that may be absent; where it begins comes second."""
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
