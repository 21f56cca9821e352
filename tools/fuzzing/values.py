"""Values, keys and headers of outputs, stored states and answers."""

import json
from contextlib import suppress
from itertools import product
from typing import Final

from upheld.checks.view import show
from upheld.generators.envelope_pb2 import Envelope, Hop, Posting
from upheld.history.events import Record
from upheld.programs import PROGRAMS, Program, Unreadable

_ENVELOPE: Final = Envelope(
    id="e1",
    timestamp_ms=5,
    chain=[Hop(topic="entries", partition=0, offset=1, topic_id=b"1")],
    postings=[Posting(account="ada", amount_cents=-7)],
).SerializeToString()
_PLACE: Final = {"topic": "entries", "partition": 0, "offset": 1}
_SUMS: Final = {"balance_cents": -7, "postings": 1, "applied": _PLACE}
_POSITION: Final = {"positionId": "ada", "client": "c", "ticker": "T", "amount": 1}
_TICKER: Final = {"ticker": "T", "exchange": "x", "name": "n", "founded": 1999}
_FREQUENCY: Final = {
    **{"robot": "ada", "name": None, "points": 1, "first_points": 1, "first_ts_ms": 1},
    **{"last_ts_ms": 2, "rate_mhz": 0, "applied": {"motors": {"partition": 0, "offset": 1}}},
}
VALUES: Final = (
    _ENVELOPE,
    *(
        json.dumps(value).encode()
        for value in (
            {"account": "ada", **_SUMS},
            {"branch": "ada", **_SUMS},
            {"customerId": "ada", "events": [{"visitorId": "v", "action": "buy"}]},
            {"customerId": "ada", "visitorId": "v", "action": "buy"},
            {"left": _POSITION, "right": _TICKER, "from": {"left": "p-0@1", "right": "t-0@1"}},
            {"left": _POSITION, "right": None, "from": {"left": "p-0@1", "right": None}},
            {"left": {"client": "ada", "positions": [1]}, "right": None, "from": {}},
            _FREQUENCY,
            {"points": 1, "ts_ms": 1, "robot": "ada"},
        )
    ),
)
SEEDS: Final = VALUES
WORDS: Final = (
    *(
        b'"account":',
        b'"applied":',
        b'"events":',
        b'"customerId":',
        b'"left":',
        b'"right":',
        b'"from":',
    ),
    *(
        b"null",
        b"true",
        b"NaN",
        b"-Infinity",
        b"1e999",
        b"1.0",
        b"-1",
        b"[]",
        b"{}",
        b'""',
        b'"ada"',
    ),
    *(b"\\ud800", b"\\u0000", b"\xed\xa0\x80", b"\xff", b"9" * 4_300, b"9" * 4_301, b'"T"', b'"c"'),
)
KEYS: Final = (b"ada", None, b"", b"\xff\xfe")


def values(data: bytes) -> None:
    """Read it as input and output of each program, as a header and as a state."""
    for program in PROGRAMS.values():
        for key, role in product(KEYS, program.topics):
            _read_record(program, _record(f"app-{role}", key, data))
        if program.stored_value:
            with suppress(Unreadable):
                hash(program.stored_value("ada", data.decode(errors="surrogateescape")))


def _record(topic: str, key: bytes | None, data: bytes) -> Record:
    headers = (("chain", data), ("id", data), *([] if key else [("chain", None)]))
    return Record(
        topic=topic, partition=0, offset=1, timestamp_ms=0, key=key, value=data, headers=headers
    )


def _read_record(program: Program, record: Record) -> None:
    with suppress(Unreadable):
        value = program.value_of(record)
        assert show(value).encode()
        for item in program.items(value):
            hash(program.address(item))
    with suppress(Unreadable):
        hash(program.lineage_of(record))
    if record.topic.removeprefix("app-") in program.inputs:
        with suppress(Unreadable):
            program.model([record])
