"""`upheld sample`: look at the records of an input before a broker starts."""

import argparse
import json
from pathlib import Path
from typing import Final

from upheld.generators.formats import Decode, decoder
from upheld.generators.inputs import made
from upheld.generators.ledger import Send
from upheld.protocol.inputs import described

# The options that are fields of an input.
FIELDS: Final = ("format", "lines", "key", "keys", "skew", "unique", "partitions", "count")


def print_records(arguments: argparse.Namespace) -> int:
    """Print each record as a line of JSON."""
    asked = {name: getattr(arguments, name) for name in FIELDS}
    given = {name: value for name, value in asked.items() if value is not None}
    fields = {"topic": "sample", "sample": arguments.file} | given
    found = described(fields, where="sample", folder=Path())
    decode = decoder(found)
    for send in made(found, arguments.seed):
        print(json.dumps(_shown(send, decode)))
    return 0


def _shown(send: Send, decode: Decode) -> dict[str, object]:
    """Return a record with its key and headers as text, and its value decoded."""
    return {
        "partition": send.partition,
        "timestamp_ms": send.timestamp_ms,
        "key": None if send.key is None else send.key.decode(),
        "value": None if send.value is None else decode(send.value),
        "headers": {name: data.decode() for name, data in send.headers},
    }
