"""The formats in which values of an input are written as bytes."""

import base64
import binascii
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from upheld.generators.schemas.avro import Avro
from upheld.generators.schemas.json_schema import JsonSchema
from upheld.generators.schemas.protobuf import Protobuf
from upheld.generators.schemas.schema import Schema, compact
from upheld.protocol.inputs import Input
from upheld.reading import loaded

Encode = Callable[[Any], bytes]
MAGIC: Final = b"\0"  # the first byte of a value in Confluent's wire format
_ID_BYTES: Final = 4


class Format(NamedTuple):
    """How values are written and read.

    Attributes:
        encode: Write a value; raises ValueError for a value that the format cannot hold.
        decode: Read a value that `encode` has written.
    """

    encode: Encode
    decode: Callable[[bytes], Any]


def schema_of(described: Input) -> Schema | None:
    """Return the schema of an input, if it has one.

    Raises:
        UsageProblem: Its file is no valid schema.
        MachineProblem: A library for it is not installed.
    """
    file = described.schema_file
    if file is None:
        return None
    match described.format:
        case "avro":
            return Avro(file)
        case "protobuf":
            return Protobuf(file, described.message)
    return JsonSchema(file)


def format_of(described: Input, schema: Schema | None, schema_id: int | None = None) -> Format:
    """Return how the values of an input are written.

    Args:
        described: The description.
        schema: Its schema, as `schema_of` gives it.
        schema_id: The id that a registry has given the schema; values begin with it then.
    """
    if schema is None:
        is_bytes = described.format == "bytes"
        return Format(_unpacked, _packed) if is_bytes else Format(compact, loaded)
    if schema_id is None:
        return Format(schema.encode, schema.decode)
    return _framed(schema, MAGIC + schema_id.to_bytes(_ID_BYTES, "big") + schema.prefix)


def _framed(schema: Schema, frame: bytes) -> Format:
    """Return a format whose values begin with a frame."""

    def encode(value: Any) -> bytes:
        return frame + schema.encode(value)

    def decode(data: bytes) -> Any:
        return schema.decode(data.removeprefix(frame))

    return Format(encode, decode)


def _unpacked(value: Any) -> bytes:
    """Return the bytes that a sample has as text in base64."""
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, binascii.Error):
        raise ValueError("it is to be a text in base64") from None


def _packed(data: bytes) -> str:
    return base64.b64encode(data).decode()
