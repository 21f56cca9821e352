"""The headers of record batches, which say who wrote a batch and how.

No client library shows producer id, epoch and control batches to its user. Layout: Kafka protocol
guide, "Record Batch".
"""

import struct
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

# Base offset … record count: the 61 bytes of a record batch header.
HEADER: Final = struct.Struct(">qiibIhiqqqhii")
LENGTH_END: Final = 12  # the length of a batch counts the bytes after its base offset and length
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
_MORE: Final = 0x80  # the bit of a varint's byte that says that another one follows
_CONTROL_KEY: Final = struct.Struct(">hh")  # version, type


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """The header of one record batch of one partition."""

    base_offset: int
    last_offset: int
    producer_id: int
    producer_epoch: int
    transactional: bool
    control: Literal["commit", "abort"] | None


def parse(data: bytes) -> Iterator[BatchHeader]:
    """Yield the batch headers in a Fetch answer.

    A last batch that is cut off is left for the next answer.
    """
    at = 0
    while at + HEADER.size <= len(data):
        base, length, _, _, _, attributes, last_delta, _, _, producer_id, epoch, _, _ = (
            HEADER.unpack_from(data, at)
        )
        if at + LENGTH_END + length > len(data):
            return
        control: Literal["commit", "abort"] | None = None
        if attributes & CONTROL:
            control = "commit" if _control_type(data, at + HEADER.size) else "abort"
        yield BatchHeader(
            base, base + last_delta, producer_id, epoch, bool(attributes & TRANSACTIONAL), control
        )
        at += LENGTH_END + length


def _control_type(data: bytes, at: int) -> int:
    """Return the type in a control record's key: 0 for an abort, 1 for a commit.

    The varints before the key have unknown widths.
    """
    at += _varint_width(data, at) + 1  # length, attributes
    for _ in range(3):  # timestamp delta, offset delta, key length
        at += _varint_width(data, at)
    return int(_CONTROL_KEY.unpack_from(data, at)[1])


def _varint_width(data: bytes, at: int) -> int:
    width = 1
    while data[at + width - 1] & _MORE:
        width += 1
    return width


def is_left_open(above: Iterable[BatchHeader], undecided: Container[int]) -> bool:
    """Return whether all that stands above the last stable offsets is still undecided.

    It is if all of it is of transactions without an outcome. Markers of aborts do not count. A
    marker of a commit there says that readers cannot see yet what was decided before.
    """
    open_or_committed = [batch for batch in above if batch.control != "abort"]
    return bool(open_or_committed) and all(
        batch.control is None and batch.producer_id in undecided for batch in open_or_committed
    )
