"""`upheld sample`: look at the records of an input before a broker starts."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from upheld.generators.formats import format_of, schema_of
from upheld.generators.inputs import made
from upheld.generators.ledger import Send
from upheld.generators.samples import MOST_BYTES
from upheld.protocol.inputs import described
from upheld.reading import loaded, read_bytes

Decode = Callable[[bytes], Any]

# The options that are fields of an input.
FIELDS: Final = (
    *("format", "lines", "message", "key", "keys", "skew", "unique", "partitions", "count"),
)
# What the name of a schema's file ends with, and the format that it is for.
SCHEMAS: Final = {
    ".avsc": "avro",
    ".proto": "protobuf",
    ".desc": "protobuf",
    ".binpb": "protobuf",
    ".pb": "protobuf",
    ".json": "json-schema",
}


def print_records(arguments: argparse.Namespace) -> int:
    """Print each record as a line of JSON."""
    asked = {name: getattr(arguments, name) for name in FIELDS}
    given = {name: value for name, value in asked.items() if value is not None}
    fields = {"topic": "sample"} | _files(arguments.file, arguments.schema) | given
    found = described(fields, where="sample", folder=Path())
    decode = format_of(found, schema_of(found)).decode
    for send in made(found, arguments.seed):
        print(json.dumps(_shown(send, decode)))
    return 0


def _files(file: Path, schema: Path | None) -> dict[str, object]:
    """Return the fields of an input that files tell: samples, a schema, and its format."""
    if schema is not None:
        return {"sample": file, "schema": schema, "format": SCHEMAS.get(schema.suffix, "json")}
    if file.suffix in SCHEMAS and not _holds_lines(file):
        return {"schema": file, "format": SCHEMAS[file.suffix]}
    return {"sample": file}


def _holds_lines(file: Path) -> bool:
    """Return whether a file is none of one JSON value, though its name ends so."""
    if file.suffix != ".json" or not file.exists():
        return False
    try:
        return not isinstance(loaded(read_bytes(file, most=MOST_BYTES)), dict | bool)
    except ValueError:
        return True


def _shown(send: Send, decode: Decode) -> dict[str, object]:
    """Return a record with its key and headers as text, and its value decoded."""
    return {
        "partition": send.partition,
        "timestamp_ms": send.timestamp_ms,
        "key": None if send.key is None else send.key.decode(),
        "value": None if send.value is None else decode(send.value),
        "headers": {name: data.decode() for name, data in send.headers},
    }
