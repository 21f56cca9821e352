"""Records in columns: envelopes from Protobuf bytes to Arrow and back.

There is no Python object per record.
"""

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError
from ptars import HandlerPool

from upheld.generators.envelope_pb2 import DESCRIPTOR, Envelope

CODEC = HandlerPool([DESCRIPTOR]).get_for_message(Envelope.DESCRIPTOR)
# The tag of a field that an envelope has.
BEGINS = pa.array([b"", b"\x0a", b"\x10", b"\x1a", b"\x22"], pa.binary())
HOP = ("topic", "partition", "offset", "topic_id")


class Envelopes(NamedTuple):
    """The envelopes of a batch; an element of every array belongs to one record."""

    id: pa.StringArray
    postings: pa.ListArray
    # An Envelope that holds the position the record was read from, and nothing else.
    own_hop: pa.BinaryArray
    # An Envelope that holds the record's chain, that position last, and nothing else.
    chain: pa.BinaryArray
    first_hop: dict[str, pa.Array]  # the fields of that chain's first hop


def decode(batch: pa.RecordBatch) -> Envelopes:
    """Decode the column `value` of records, with the positions they were read from.

    Raises:
        ValueError: A record cannot be read; the text names it as poison.
    """
    try:
        fields = _fields(batch["key"], batch["value"])
    except ValueError:
        raise ValueError(poison(batch)) from None
    own = [batch[name] for name in HOP]
    own_hop = _encode(
        pa.StructArray.from_arrays(own, HOP), pa.array(range(len(batch) + 1), pa.int32())
    )
    chain = fields["chain"]
    hops = fields["chain"].flatten()
    empty = pc.equal(pc.list_value_length(chain), 0)
    first = hops.take(pc.if_else(empty, pa.scalar(None, pa.int32()), chain.offsets[:-1]))
    return Envelopes(
        id=fields["id"],
        postings=fields["postings"],
        own_hop=own_hop,
        # To append to a repeated field is to append its bytes: that is how Protobuf merges
        # messages.
        chain=join(_encode(hops, chain.offsets), own_hop),
        first_hop={
            name: pc.coalesce(pc.struct_field(first, name), column)
            for name, column in zip(HOP, own, strict=True)
        },
    )


def join(left: pa.BinaryArray, right: pa.BinaryArray) -> pa.BinaryArray:
    """Return the bytes of one message after those of another.

    Protobuf reads them as the two messages merged.
    """
    return pc.binary_join_element_wise(left, right, b"")


def poison(batch: pa.RecordBatch) -> str:
    """Return which record of a batch cannot be read, and why."""
    number, why = next(
        found for found in enumerate(flaws(batch["key"], batch["value"]).to_pylist()) if found[1]
    )
    topic, partition, offset = (batch[name][number] for name in HOP[:3])
    return f"poison: {topic}-{partition}@{offset} {why}"


def flaws(keys: pa.Array, values: pa.Array) -> pa.Array:
    """Return why each record cannot be read, null for one that can be.

    Records that cannot be read together are looked at by halves.
    """
    try:
        _fields(keys, values)
    except ValueError as error:
        if len(values) == 1:
            return pa.array([str(error)])
        half = len(values) // 2
        return pa.concat_arrays(
            [flaws(keys[:half], values[:half]), flaws(keys[half:], values[half:])]
        )
    return pa.nulls(len(values), pa.string())


def _fields(keys: pa.Array, values: pa.Array) -> pa.RecordBatch:
    """Return the envelopes of records, in columns.

    Raises:
        ValueError: One of them cannot be read.
    """
    for name, column in (("key", keys), ("value", values)):
        if column.null_count:  # to the codec null is an empty envelope
            raise ValueError(f"has no {name}")
    try:
        fields = CODEC.array_to_record_batch(values)
        # The codec lets any group end where another one does, so that some JSON is an envelope to
        # it. Protobuf does not.
        for value in values.filter(pc.invert(pc.is_in(pc.binary_slice(values, 0, 1), BEGINS))):
            Envelope.FromString(value.as_py())
    except (ValueError, DecodeError) as error:
        raise ValueError(f"holds no envelope: {error}") from None
    return fields


def _encode(hops: pa.StructArray, offsets: pa.Int32Array) -> pa.BinaryArray:
    """Encode envelopes that hold a chain and nothing else."""
    chain = pa.ListArray.from_arrays(offsets, hops).cast(CODEC.schema().field("chain").type)
    return CODEC.record_batch_to_array(pa.RecordBatch.from_pydict({"chain": chain}))
