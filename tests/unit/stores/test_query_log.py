"""The harness reads writes in Cassandra's query log, on hand-written documents."""

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from upheld.stores.cassandra_server.query_log import QueryLog, Write, statements, written
from upheld.verdicts import HarnessError

INSERT = "INSERT INTO state (stage, key, value) VALUES (?, ?, ?)"
UPDATE = "update app.state set value = 'it''s' where key = ? and stage = 'balances'"
ADA = (b"balances", b"ada", b"1")
AT_MS = 1_700_000_000_250


def name(text: str) -> bytes:
    """Return a field's name, short or long."""
    return (
        bytes([0xC0 + len(text)]) + text.encode() if len(text) < 32 else b"\xb7" + text_of(text)[1:]
    )


def text_of(text: str) -> bytes:
    """Return a text behind its length, seven bits a byte."""
    size = len(text)
    return (
        b"\xb8" + bytes([size & 0x7F | 0x80, size >> 7] if size > 0x7F else [size]) + text.encode()
    )


def blob(content: bytes) -> bytes:
    """Return bytes behind their length and type."""
    return b"\x82" + struct.pack("<I", len(content) + 1) + b"\x8a" + content


def options(values: Sequence[bytes], version: int = 4) -> bytes:
    """Return a request's options as they travel, with these values bound."""
    flags = struct.pack(">I" if version > 4 else "B", bool(values))
    bound = b"".join(struct.pack(">i", len(value)) + value for value in values)
    return (
        struct.pack(">H", 1) + flags + (struct.pack(">H", len(values)) + bound if values else b"")
    )


def single(
    query: str, values: Sequence[bytes] = ADA, keyspace: bytes = text_of("app"), version: int = 4
) -> bytes:
    """Return the document of one statement."""
    head = (
        name("version")
        + b"\xa5\0\0"
        + name("type")
        + text_of("single-query")
        + b"\x90\0\0\0\xdf\x8f\x8e\x02\0\0\0\0\0"
    )
    when = (
        name("query-start-time")
        + b"\xa7"
        + struct.pack("<q", AT_MS)
        + name("protocol-version")
        + bytes([version])
    )
    return (
        head
        + when
        + name("query-options")
        + blob(options(values, version))
        + name("keyspace")
        + keyspace
        + name("query")
        + text_of(query)
    )


def batch(*queries: tuple[str, Sequence[bytes]]) -> bytes:
    """Return the document of several statements at once."""
    head = (
        name("type")
        + text_of("batch")
        + name("query-start-time")
        + b"\xa7"
        + struct.pack("<q", AT_MS)
    )
    number = b"\xa6" + struct.pack("<i", len(queries))
    texts = name("queries") + number + b"".join(text_of(query) for query, _ in queries)
    bound = b"".join(bytes([len(values)]) + b"".join(map(blob, values)) for _, values in queries)
    return head + name("keyspace") + text_of("app") + texts + name("values") + number + bound


def test_long_padding_is_passed_over_whole() -> None:
    """Padding has four bytes of length, and as many bytes as they say.

    A reader that is four bytes short takes the last of them for the head of a number.
    """
    padding = b"\x8e" + struct.pack("<I", 8) + bytes(4) + b"\xa7\0\0\0"
    keyspace = name("keyspace")

    padded = single(INSERT, version=4).replace(keyspace, padding + keyspace)

    assert list(statements(padded)) == list(statements(single(INSERT, version=4)))


@pytest.mark.parametrize("version", [4, 5])
def test_a_statement_with_bound_values(version: int) -> None:
    """Keyspace, time, stage and key are those of the request.

    They are in either version of the protocol.
    """
    assert list(statements(single(INSERT, version=version))) == [
        ("app", Write(AT_MS / 1000, "balances", "ada"))
    ]


def test_a_batch_is_many_writes() -> None:
    """Each of its statements is one, with its own values."""
    found = list(statements(batch((INSERT, ADA), (UPDATE, [b"bob"]))))

    assert [(keyspace, write.key) for keyspace, write in found] == [("app", "ada"), ("app", "bob")]


def test_no_keyspace_in_use() -> None:
    """It stands in the statement then."""
    (found,) = statements(single(UPDATE, [b"bob"], keyspace=b"\xbb"))

    assert found == ("app", Write(AT_MS / 1000, "balances", "bob"))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (UPDATE, ("app", "balances", "ada", "")),
        (INSERT.replace("?, ?", "'balances', :key") + " USING TTL 9", ("", "balances", "ada", "")),
        (
            'INSERT INTO "app"."state" ("key", stage, value)\nVALUES (?, \'balances\', ?)',
            ("app", "balances", "ada", ""),
        ),
        ("INSERT INTO state JSON ?", ("", "", "", "INSERT INTO state JSON ?")),
        ("SELECT * FROM state", None),
        ("DELETE FROM state WHERE stage = ?", None),
    ],
)
def test_what_a_statement_writes(query: str, found: tuple[str, str, str, str] | None) -> None:
    """A row, no row, or what nobody can say."""
    assert written(query, [b"ada", b"2"]) == found


def test_a_log_that_grows(tmp_path: Path) -> None:
    """A record under way is not there yet, and a record of no statement is skipped.

    A file that has ended goes on in the next.
    """
    document = single(INSERT)
    log = QueryLog(tmp_path)
    assert log.writes("app") == []

    def framed(content: bytes, flags: int = 0) -> bytes:
        return struct.pack("<I", len(content) | flags) + content + bytes(-len(content) % 4)

    first = tmp_path / "20260101.cq4"
    second = tmp_path / "20260102.cq4"
    first.write_bytes(framed(b"header", 1 << 30) + framed(document) + framed(document, 1 << 31))
    assert len(log.writes("app")) == 1
    first.write_bytes(framed(b"header", 1 << 30) + framed(document) * 2 + bytes(64))
    assert len(log.writes("app")) == 2
    first.write_bytes(framed(b"header", 1 << 30) + framed(document) * 2 + framed(b"", 3 << 30))
    second.write_bytes(framed(b"header", 1 << 30) + framed(document))
    assert len(log.writes("app")) == 3
    assert log.writes("other") == []


def test_what_is_no_log() -> None:
    """An unknown type of value is said, and nothing is guessed."""
    with pytest.raises(HarnessError, match="0x99"):
        list(statements(b"\x99"))
