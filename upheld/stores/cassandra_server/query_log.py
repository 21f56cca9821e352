"""Cassandra's full query log: every statement that the server has carried out, with the values that
were bound to it.

The server appends a statement when it has succeeded and before many have heard of it, and waits
where the log cannot follow, so none is missing; one that timed out is not there, though it may have
had its effect. The files are Chronicle's queues: documents, each behind four bytes that hold its
length and two flags, of named fields with typed values.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from upheld.verdicts import HarnessError

_UNDER_WAY, _NO_STATEMENT, _LENGTH = 1 << 31, 1 << 30, (1 << 30) - 1
_GOES_ON = _UNDER_WAY | _NO_STATEMENT  # in the next file
# code -> bytes of the length that follows, before a byte for the type, and bytes
_SIZES = {
    0x80: 1,
    0x81: 2,
    0x82: 4,
}
_INTEGERS = {0xA1: 1, 0xA2: 2, 0xA3: 4, 0xA4: 1, 0xA5: 2, 0xA6: 4, 0xA7: 8}  # code -> bytes
_UNSIGNED = (0xA1, 0xA2, 0xA3)
# code -> bytes: padding, and floats, which no wanted number is
_PASSED_OVER = {
    0x8F: 0,
    0x90: 4,
    0x91: 8,
}
_LONG_PADDING, _LONG_NAME, _LONG_TEXT, _NULL = 0x8E, 0xB7, 0xB8, 0xBB
_SHORT_NAME, _SHORT_TEXT = 0xC0, 0xE0  # and 31 codes above each: the length

_TERM = r"(\?|:\w+|'(?:[^']|'')*')"
_TABLE = r'(?:"?(\w+)"?\s*\.\s*)?"?state"?'
_INSERT = re.compile(
    rf"\s*INSERT\s+INTO\s+{_TABLE}\s*\(([\w\s,\"]+)\)\s*VALUES\s*\(\s*{_TERM}\s*,\s*{_TERM}\s*,\s*{_TERM}\s*\)",
    re.I,
)
_UPDATE = re.compile(
    rf'\s*UPDATE\s+{_TABLE}\s+SET\s+"?value"?\s*=\s*{_TERM}\s+WHERE\s+"?(\w+)"?\s*=\s*{_TERM}\s+AND\s+"?(\w+)"?\s*=\s*{_TERM}',
    re.I,
)
_WRITES = re.compile(r"\s*(INSERT|UPDATE|BEGIN)\b", re.I)


class Write(NamedTuple):
    """A row that was written: when (wall clock, seconds), stage and key; or, with neither, a
    statement that nobody can read.
    """

    at_s: float
    stage: str
    key: str
    unreadable: str = ""


class QueryLog:
    """What was written to the tables `state` of a server, read from its log's folder as it
    grows.
    """

    def __init__(self, folder: Path) -> None:
        # Files read to their end, and bytes read of the next one.
        self._folder, self._done, self._at = (
            folder,
            0,
            0,
        )
        self._writes: dict[str, list[Write]] = {}

    def writes(self, keyspace: str) -> list[Write]:
        """All writes to the table of a keyspace so far; quick where nothing is new."""
        for document in self._documents():
            for where, write in statements(document):
                self._writes.setdefault(where, []).append(write)
        return self._writes.setdefault(keyspace, [])

    def go_on_in(self, folder: Path) -> None:
        """Read no more here than there is: the server was killed, and writes elsewhere now."""
        self.writes("")
        self._folder, self._done, self._at = folder, 0, 0

    def _documents(self) -> Iterator[bytes]:
        for path in sorted(self._folder.glob("*.cq4"))[self._done :]:
            with path.open("rb") as file:
                while True:
                    file.seek(self._at)
                    header = int.from_bytes(file.read(4), "little")
                    if header == _GOES_ON:
                        break
                    if not header or header & _UNDER_WAY:
                        return
                    length = header & _LENGTH
                    self._at += 4 + ((length + 3) & ~3)
                    if not header & _NO_STATEMENT:
                        yield file.read(length)
            self._done, self._at = self._done + 1, 0


def statements(document: bytes) -> Iterator[tuple[str, Write]]:
    """The writes of one document, each with its keyspace."""
    fields = _fields(document)
    (at_ms,), (keyspace,) = fields["query-start-time"], fields["keyspace"]
    if fields["type"] == ["batch"]:
        queries, numbers = fields["queries"][1:], iter(fields["values"][1:])
        bound = [[next(numbers) for _ in range(count)] for count in numbers]
    else:
        queries = fields["query"]
        bound = [_bound(fields["query-options"][0], fields["protocol-version"][0])]
    for query, values in zip(queries, bound, strict=True):
        if found := written(query, values):
            yield found[0] or keyspace or "", Write(at_ms / 1000, *found[1:])


def written(query: str, values: list[bytes | None]) -> tuple[str, str, str, str] | None:
    """Keyspace, stage and key that a statement writes, or why nobody can say; None of what writes
    no row.
    """
    if insert := _INSERT.match(query):
        keyspace, names, *terms = insert.groups()
        columns = [name.strip(' \n\t"').lower() for name in names.split(",")]
    elif update := _UPDATE.match(query):
        keyspace, value, first, one, second, other = update.groups()
        columns, terms = ["value", first.lower(), second.lower()], [value, one, other]
    else:
        return ("", "", "", query) if _WRITES.match(query) else None
    if len(columns) != len(terms) or not {"stage", "key"} <= set(columns):
        return "", "", "", query
    given = iter(values)
    texts = (
        term[1:-1].replace("''", "'") if term[0] == "'" else _text(next(given, None))
        for term in terms
    )
    row = dict(zip(columns, texts, strict=True))
    return keyspace or "", row["stage"], row["key"], ""


def _text(value: bytes | None) -> str:
    return (value or b"").decode(errors="replace")


def _bound(options: bytes, version: int) -> list[bytes | None]:
    """The values among a request's options, as they travel: consistency, flags, number of values,
    and each behind its length.
    """
    at = 3 if version < 5 else 6
    if not options[at - 1] & 1:
        return []
    count, at, values = int.from_bytes(options[at : at + 2]), at + 2, list[bytes | None]()
    for _ in range(count):
        size, at = int.from_bytes(options[at : at + 4], signed=True), at + 4
        values.append(options[at : at + size] if size >= 0 else None)
        at += max(0, size)
    return values


def _fields(document: bytes) -> dict[str, list[Any]]:
    """Name -> its values, in their order: bytes, texts, numbers, None."""
    fields: dict[str, list[Any]] = {}
    values, at = fields.setdefault("", []), 0

    def number(size: int) -> int:
        nonlocal at
        at += size
        return int.from_bytes(document[at - size : at], "little")

    def long_size() -> int:
        """Seven bits a byte, the lowest first; the eighth says that more follow."""
        part = number(1)
        return part & 0x7F | (long_size() << 7 if part & 0x80 else 0)

    while at < len(document):
        code = number(1)
        if code < 0x80:
            values.append(code)
        elif code in _SIZES:
            size = number(_SIZES[code])
            values.append(document[at + 1 : at + size])
            at += size
        elif code in _INTEGERS:
            size = _INTEGERS[code]
            value = number(size)
            values.append(
                value if code in _UNSIGNED or value < 1 << 8 * size - 1 else value - (1 << 8 * size)
            )
        elif code == _NULL:
            values.append(None)
        elif code in (_LONG_NAME, _LONG_TEXT) or code >= _SHORT_NAME:
            size = code & 0x1F if code >= _SHORT_NAME else long_size()
            text = document[at : at + size].decode(errors="replace")
            at += size
            if code == _LONG_NAME or _SHORT_NAME <= code < _SHORT_TEXT:
                values = fields.setdefault(text, [])
            else:
                values.append(text)
        elif code in _PASSED_OVER:
            at += _PASSED_OVER[code]
        elif code == _LONG_PADDING:
            at += number(4)
        else:
            raise HarnessError(
                f"Cassandra's query log holds 0x{code:02x}, which the harness cannot read"
            )
    return fields
