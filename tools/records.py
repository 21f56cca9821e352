"""The JSON Schemas of the records of each program, with examples.

A record is `{"role", "key", "value"}`: the role of its topic, its key as text, and its value. A
value that is JSON stands as it is. An Envelope stands as the base64 of its bytes.
"""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from upheld.generators.envelope_pb2 import Envelope, Hop, Posting
from upheld.programs import PROGRAMS
from upheld.programs.joins import JOINS, NUMBER, NUMBERS, TEXT, TEXT_OR_NULL, Join, Table

Schema = dict[str, Any]

_INTEGER: Final[Schema] = {"type": "integer"}
_TEXT: Final[Schema] = {"type": "string"}
_TYPES: Final[Mapping[str, Schema]] = {
    TEXT: _TEXT,
    NUMBER: _INTEGER,
    NUMBERS: {"type": "array", "items": _INTEGER},
    TEXT_OR_NULL: {"type": ["string", "null"]},
}
_TOMBSTONE: Final[Schema] = {"type": "null"}
_ENVELOPE: Final[Schema] = {
    "type": "string",
    "contentEncoding": "base64",
    "contentMediaType": "application/x-protobuf; messageType=upheld.Envelope",
    "description": "the bytes of an Envelope; `upheld schema envelope` prints its .proto",
}
# What a field says.
_SENTENCES: Final[Mapping[str, str]] = {
    "account": "the account, which is the key too",
    "action": "what the visitor did",
    "amount": "the number of shares",
    "applied": "the first hop of the last entry that is counted in",
    "balance_cents": "the sum of all postings",
    "branch": "the branch, which is the key too",
    "client": "the name of the client",
    "customerId": "the customer, which is the key too",
    "email": "the address of the client",
    "events": "the events of the customer, in the order of the log",
    "exchange": "the exchange on which it is traded",
    "first_points": "the points of the signals with the least ts_ms",
    "first_ts_ms": "the least ts_ms",
    "founded": "the year in which the company was founded",
    "from": "the two records that the result was made from",
    "last_ts_ms": "the greatest ts_ms",
    "left": "of the left table",
    "name": "the name",
    "offset": "the offset of the record",
    "partition": "the partition of the record",
    "points": "how many points it moved",
    "positionId": "the position, which is the key too",
    "positions": "the numbers of the client's positions",
    "postings": "how many postings are counted in",
    "rate_mhz": "points a second, in thousandths",
    "right": "of the right table; null if there is no partner",
    "robot": "the robot, which is the key too",
    "surname": "the surname",
    "ticker": "the sign of a company",
    "topic": "the topic of the record",
    "ts_ms": "when it was measured, in milliseconds",
    "visitorId": "the event, which is unique",
}
_ROW_OF: Final[Mapping[str, Any]] = {
    "positions": {"positionId": "p1", "client": "c1", "ticker": "ACME", "amount": 7},
    "tickers": {"ticker": "ACME", "exchange": "LON", "name": "Acme", "founded": 1999},
    "client-positions": {"client": "c1", "positions": [1, 2]},
    "client-details": {"client": "c1", "name": "Ada", "surname": "Byron", "email": "a@b.example"},
}


class Kind(NamedTuple):
    """The records of one role.

    Attributes:
        key: What the key is.
        value: The schema of the value.
        examples: Keys and values.
    """

    key: str
    value: Schema
    examples: Sequence[tuple[str, Any]]


def table(fields: Mapping[str, Schema], *, is_exact: bool) -> Schema:
    """Return the schema of an object with these fields; an exact one has no other."""
    exact: Schema = {"additionalProperties": False} if is_exact else {}
    described = {name: {"description": _SENTENCES[name], **field} for name, field in fields.items()}
    return {"type": "object", "properties": described, "required": [*fields], **exact}


def _or_null(value: Schema) -> Schema:
    return {"anyOf": [value, _TOMBSTONE]}


def _entry(*chain: Hop) -> str:
    envelope = Envelope(
        id="e1",
        timestamp_ms=1_700_000_000_000,
        chain=chain,
        postings=[
            Posting(account="a1", amount_cents=-250),
            Posting(account="a2", amount_cents=250),
        ],
    )
    return b64encode(envelope.SerializeToString(deterministic=True)).decode()


def _sums(key: str) -> Schema:
    place = {"topic": _TEXT, "partition": _INTEGER, "offset": _INTEGER}
    fields = {key: _TEXT, "balance_cents": _INTEGER, "postings": _INTEGER}
    return table({**fields, "applied": table(place, is_exact=True)}, is_exact=True)


def _row_of_sums(key: str, name: str, cents: int, postings: int) -> tuple[str, Any]:
    applied = {"topic": "entries", "partition": 0, "offset": 7}
    return name, {key: name, "balance_cents": cents, "postings": postings, "applied": applied}


def _entries(key: str) -> Kind:
    from_elsewhere = Hop(topic="orders", partition=2, offset=41)
    return Kind(key, _ENVELOPE, [("b1", _entry()), ("b1", _entry(from_elsewhere))])


def _ledger() -> dict[str, Kind]:
    row = _row_of_sums("account", "a1", -250, 1)
    return {
        "entries": _entries("the branch"),
        "balances": Kind("the account", _sums("account"), [row]),
    }


def _branches() -> dict[str, Kind]:
    total = Kind("the branch", _sums("branch"), [_row_of_sums("branch", "b1", 0, 2)])
    return _ledger() | {"totals": total}


def _relay() -> dict[str, Kind]:
    read_from = Hop(topic="input", partition=0, offset=3)
    return {
        "input": _entries("any text"),
        "output": Kind("the key of the input", _ENVELOPE, [("b1", _entry(read_from))]),
    }


def _batcher() -> dict[str, Kind]:
    event = {"visitorId": _TEXT, "action": _TEXT}
    visit = table({"customerId": _TEXT, **event}, is_exact=True)
    events = {"type": "array", "minItems": 1, "items": table(event, is_exact=True)}
    batch = table({"customerId": _TEXT, "events": events}, is_exact=True)
    said = {"visitorId": "v1", "action": "buys"}
    return {
        "visits": Kind(
            "the customer", _or_null(visit), [("c1", {"customerId": "c1", **said}), ("c1", None)]
        ),
        "batches": Kind("the customer", batch, [("c1", {"customerId": "c1", "events": [said]})]),
    }


def _pulse() -> dict[str, Kind]:
    signal = table({"robot": _TEXT, "ts_ms": _INTEGER, "points": _INTEGER}, is_exact=False)
    place = table({"partition": _INTEGER, "offset": _INTEGER}, is_exact=True)
    numbers = ("points", "first_points", "first_ts_ms", "last_ts_ms", "rate_mhz")
    applied = {"type": "object", "minProperties": 1, "additionalProperties": place}
    frequency = table(
        {
            "robot": _TEXT,
            "name": {"type": ["string", "null"]},
            **dict.fromkeys(numbers, _INTEGER),
            "applied": applied | {"description": "role -> the last record that is counted in"},
        },
        is_exact=True,
    )
    row = {
        "robot": "r1",
        "name": "Ada",
        "points": 12,
        "first_points": 5,
        "first_ts_ms": 1000,
        "last_ts_ms": 3000,
        "rate_mhz": 3500,
        "applied": {role: {"partition": 0, "offset": 0} for role in ("motors", "robots")},
    }
    said = ("r1", {"robot": "r1", "ts_ms": 1000, "points": 5})
    name = _or_null(table({"name": _TEXT}, is_exact=False))
    return {
        **dict.fromkeys(("motors", "grippers", "controllers"), Kind("the robot", signal, [said])),
        "robots": Kind("the robot", name, [("r1", {"name": "Ada"}), ("r1", None)]),
        "frequency": Kind("the robot", frequency, [("r1", row)]),
    }


def _row(side: Table, *, is_exact: bool) -> Schema:
    return table({name: _TYPES[kind] for name, kind in side.fields.items()}, is_exact=is_exact)


def _side(side: Table) -> Kind:
    row = _ROW_OF[side.role]
    first = next(iter(side.fields))
    value = _or_null(_row(side, is_exact=False))
    return Kind(f"`{first}` of the row", value, [(row[first], row), (row[first], None)])


def _join(join: Join) -> dict[str, Kind]:
    right = _row(join.right, is_exact=True)
    place: Schema = {"type": "string", "description": "role-partition@offset"}
    places = {"left": place, "right": {"type": ["string", "null"]} if join.outer else place}
    result = table(
        {
            "left": _row(join.left, is_exact=True),
            "right": _or_null(right) if join.outer else right,
            "from": table(places, is_exact=True),
        },
        is_exact=True,
    )
    left = _ROW_OF[join.left.role]
    key = left[next(iter(join.left.fields))]
    at = {"left": f"{join.left.role}-0@3", "right": f"{join.right.role}-1@5"}
    examples = [(key, {"left": left, "right": _ROW_OF[join.right.role], "from": at}), (key, None)]
    if join.outer:
        alone = {"left": left, "right": None, "from": at | {"right": None}}
        examples.append((key, alone))
    return {
        join.left.role: _side(join.left),
        join.right.role: _side(join.right),
        "joined": Kind("the key of the left row", _or_null(result), examples),
    }


KINDS: Final[Mapping[str, Mapping[str, Kind]]] = {
    "relay": _relay(),
    "ledger": _ledger(),
    "branches": _branches(),
    "pulse": _pulse(),
    "batcher": _batcher(),
    **{name: _join(join) for name, join in JOINS.items()},
}


def definitions(program: str) -> dict[str, Schema]:
    """Return the schema of a record of each role of a program."""
    directions = PROGRAMS[program].topics
    return {role: _record(role, kind, directions[role]) for role, kind in KINDS[program].items()}


def _record(role: str, kind: Kind, direction: str) -> Schema:
    examples = [{"role": role, "key": key, "value": value} for key, value in kind.examples]
    value = kind.value if "description" in kind.value else kind.value | {"description": "the value"}
    return {
        "title": role,
        "description": f"A record of the {direction} `{role}`.",
        "type": "object",
        "properties": {
            "role": {"const": role, "description": "the role of its topic"},
            "key": {"type": "string", "description": kind.key},
            "value": value,
        },
        "required": ["role", "key", "value"],
        "additionalProperties": False,
        "examples": json.loads(json.dumps(examples)),
    }
