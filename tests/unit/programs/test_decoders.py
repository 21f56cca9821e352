"""Outputs and states that no contract allows are the design's, and no traceback."""

import json
from typing import Any

import pytest
from fuzzing.values import VALUES
from histories import Story

from upheld.history.events import Record
from upheld.programs import PROGRAMS, Unreadable
from upheld.programs.ledger import Diagnostician, model
from upheld.reading import MOST_LEVELS

NUMBER = 10**4_300 - 1  # the longest that JSON may hold
HOSTILE = {
    "empty": b"",
    "null": b"null",
    "a number": b"1",
    "a text": b'"account"',
    "a list": b"[]",
    "deep lists": b"[" * 100_000 + b"]" * 100_000,
    "just too deep": b"[" * (MOST_LEVELS + 50) + b"]" * (MOST_LEVELS + 50),
    "deep tables that are cut": b'{"applied":' * 100_000,
    "a long number": b'{"balance_cents": %s}' % (b"9" * 10_000),
    "no number": b'{"account": "ada", "balance_cents": NaN, "postings": 1e999, "applied": {}}',
    "half a pair": b'{"account": "\\ud800", "customerId": "\\udfff"}',
    "no UTF-8": b'{"account": "\xff"}',
    "half a letter": "ä".encode()[:1],
    "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"account": "ada"}'.encode("utf-16"),
    "a customer that is no text": b'{"customerId": 1, "events": [{"visitorId": "", "action": ""}]}',
    "events that are no list": b'{"customerId": "ada", "events": 7}',
    "events in events": b'{"customerId": "ada", "events": [[], {}, {"visitorId": []}]}',
    "tables for texts": b'{"left": {"positionId": {}}, "right": [], "from": {"left": []}}',
    "places that are none": b'{"robot": "ada", "applied": {"motors": [], "grippers": null}}',
    "a name twice": b'{"account": "ada", "account": 7}',
    "a megabyte": b'{"account": "' + b"x" * (1 << 20) + b'"}',
    "NUL": b"\0" * 100,
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("key", [b"ada", None, b"\xff"])
def test_an_output_that_no_contract_allows(program: str, kind: str, key: bytes | None) -> None:
    """It is no output, no stored state and no lineage."""
    value = HOSTILE[kind]
    record = Record(
        topic=f"app-{PROGRAMS[program].writes}",
        partition=0,
        offset=1,
        timestamp_ms=0,
        key=key,
        value=value,
        headers=(("chain", value), ("id", value)),
    )
    stored_value = PROGRAMS[program].stored_value

    if not (program == "relay" and kind == "empty" and key):  # an envelope without fields
        with pytest.raises(Unreadable):
            PROGRAMS[program].value_of(record)
    if stored_value:
        with pytest.raises(Unreadable):
            stored_value("ada", value.decode(errors="surrogateescape"))
    if kind not in {"empty"} and program in {"relay", "ledger", "branches"}:
        with pytest.raises(Unreadable):
            PROGRAMS[program].lineage_of(record)


@pytest.mark.parametrize("data", VALUES)
def test_a_value_of_another_program(data: bytes) -> None:
    """A value that one contract allows is read or refused by every other one."""
    record = Record(topic="app-x", partition=0, offset=1, timestamp_ms=0, key=b"ada", value=data)
    read = 0
    for program in PROGRAMS.values():
        try:
            read += bool(program.value_of(record))
        except Unreadable:
            continue
    assert read <= 3


def test_sums_of_very_long_numbers() -> None:
    """A difference of more digits than Python prints is diagnosed."""
    entry = Story("ledger").entry(ada=-1)
    states = model([entry])[b"ada"]
    row: dict[str, Any] = {
        "account": "ada",
        "balance_cents": NUMBER,
        "postings": 1,
        "applied": {"topic": entry.topic, "partition": 0, "offset": 0},
    }
    for cents, postings in ((NUMBER, 1), (-NUMBER, NUMBER), (0, -NUMBER)):
        value = json.dumps(row | {"balance_cents": cents, "postings": postings}).encode()
        output = entry._replace(key=b"ada", value=value)
        sums = PROGRAMS["ledger"].value_of(output)

        assert Diagnostician([entry])(b"ada", sums, states).why
