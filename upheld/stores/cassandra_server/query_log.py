"""Cassandra's full query log: every statement that the server has carried out.

The values that were bound to a statement are in it, too. The server appends a statement when it has
succeeded, and before most clients know of it. It waits if the log cannot follow, so no statement is
missing. A statement that timed out is not there, though it may have had its effect. The files are
Chronicle's queues: documents of named fields with typed values. Each document stands after four
bytes that hold its length and two flags.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple, cast

from upheld.verdicts import HarnessError

# A document's header: two flags, and its length.
_HEADER_BYTES: Final = 4
_UNDER_WAY: Final = 1 << 31
_NO_STATEMENT: Final = 1 << 30
_LENGTH: Final = (1 << 30) - 1
_GOES_ON: Final = _UNDER_WAY | _NO_STATEMENT  # in the next file
# Codes of values. Those below the first one are small numbers themselves.
_FIRST_CODE: Final = 0x80
# code -> bytes of the length that follows; a byte for the type and the value come after it
_SIZES: Final = {0x80: 1, 0x81: 2, 0x82: 4}
_INTEGERS: Final = {0xA1: 1, 0xA2: 2, 0xA3: 4, 0xA4: 1, 0xA5: 2, 0xA6: 4, 0xA7: 8}  # code -> bytes
_UNSIGNED: Final = (0xA1, 0xA2, 0xA3)
# code -> bytes: padding, and floats, which no field that is read here has
_PASSED_OVER: Final = {0x8F: 0, 0x90: 4, 0x91: 8}
_LONG_PADDING: Final = 0x8E
_LONG_NAME: Final = 0xB7
_LONG_TEXT: Final = 0xB8
_NULL: Final = 0xBB
# The 31 codes above each of these hold the length.
_SHORT_NAME: Final = 0xC0
_SHORT_TEXT: Final = 0xE0
_SHORT_LENGTH: Final = 0x1F
# Where a request's flags stand among its options, in older and in newer versions.
_OLD_FLAGS_END: Final = 3
_NEW_FLAGS_END: Final = 6
_NEW_VERSION: Final = 5
_HAS_VALUES: Final = 1

_TERM: Final = r"(\?|:\w+|'(?:[^']|'')*')"
_TABLE: Final = r'(?:"?(\w+)"?\s*\.\s*)?"?state"?'
_INSERT: Final = re.compile(
    rf"\s*INSERT\s+INTO\s+{_TABLE}\s*\(([\w\s,\"]+)\)\s*"
    rf"VALUES\s*\(\s*{_TERM}\s*,\s*{_TERM}\s*,\s*{_TERM}\s*\)",
    re.I,
)
_UPDATE: Final = re.compile(
    rf'\s*UPDATE\s+{_TABLE}\s+SET\s+"?value"?\s*=\s*{_TERM}\s+'
    rf'WHERE\s+"?(\w+)"?\s*=\s*{_TERM}\s+AND\s+"?(\w+)"?\s*=\s*{_TERM}',
    re.I,
)
_WRITES: Final = re.compile(r"\s*(INSERT|UPDATE|BEGIN)\b", re.I)


Value = bytes | str | int | None


class Write(NamedTuple):
    """A row that was written: wall-clock seconds, stage and key.

    Or, with neither stage nor key, a statement whose row cannot be read.
    """

    at_s: float
    stage: str
    key: str
    unreadable: str = ""


class QueryLog:
    """The writes to the tables `state` of a server, read from its log as that grows."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._done = 0  # files read to their end
        self._at = 0  # bytes read of the next one
        self._writes: dict[str, list[Write]] = {}

    def writes(self, keyspace: str) -> list[Write]:
        """Return all writes to the table of a keyspace so far; quick if nothing is new."""
        for document in self._documents():
            for where, write in statements(document):
                self._writes.setdefault(where, []).append(write)
        return self._writes.setdefault(keyspace, [])

    def go_on_in(self, folder: Path) -> None:
        """Read on in another folder: the server was killed, and writes there now.

        All writes in this folder are read first.
        """
        self.writes("")
        self._folder = folder
        self._done = 0
        self._at = 0

    def _documents(self) -> Iterator[bytes]:
        for path in sorted(self._folder.glob("*.cq4"))[self._done :]:
            with path.open("rb") as file:
                while True:
                    file.seek(self._at)
                    header = int.from_bytes(file.read(_HEADER_BYTES), "little")
                    if header == _GOES_ON:
                        break
                    if not header or header & _UNDER_WAY:
                        return
                    length = header & _LENGTH
                    self._at += _HEADER_BYTES + ((length + 3) & ~3)  # documents are aligned
                    if not header & _NO_STATEMENT:
                        yield file.read(length)
            self._done += 1
            self._at = 0


class Statement(NamedTuple):
    """The row that a statement writes; or the statement, if its row cannot be read."""

    keyspace: str
    stage: str
    key: str
    unreadable: str = ""


def statements(document: bytes) -> Iterator[tuple[str, Write]]:
    """Yield the writes of one document, each with its keyspace."""
    fields = _Document(document).fields()
    (at_ms,) = cast(list[int], fields["query-start-time"])
    (keyspace,) = cast(list[str | None], fields["keyspace"])
    if fields["type"] == ["batch"]:
        queries = fields["queries"][1:]
        bound = _bound_in_batch(fields["values"][1:])
    else:
        queries = fields["query"]
        (options,) = cast(list[bytes], fields["query-options"])
        (version,) = cast(list[int], fields["protocol-version"])
        bound = [_bound(options, version)]
    for query, values in zip(cast(list[str], queries), bound, strict=True):
        if found := written(query, values):
            write = Write(at_ms / 1000, found.stage, found.key, found.unreadable)
            yield found.keyspace or keyspace or "", write


def written(query: str, values: list[bytes | None]) -> Statement | None:
    """Return the row that a statement writes; None if it writes none."""
    if insert := _INSERT.match(query):
        keyspace, names, *terms = insert.groups()
        columns = [name.strip(' \n\t"').lower() for name in names.split(",")]
    elif update := _UPDATE.match(query):
        keyspace, value, first, first_term, second, second_term = update.groups()
        columns = ["value", first.lower(), second.lower()]
        terms = [value, first_term, second_term]
    else:
        return Statement("", "", "", query) if _WRITES.match(query) else None
    if len(columns) != len(terms) or not {"stage", "key"} <= set(columns):
        return Statement("", "", "", query)
    given = iter(values)
    texts = (
        term[1:-1].replace("''", "'") if term[0] == "'" else _text(next(given, None))
        for term in terms
    )
    row = dict(zip(columns, texts, strict=True))
    return Statement(keyspace or "", row["stage"], row["key"])


def _text(value: bytes | None) -> str:
    return (value or b"").decode(errors="replace")


def _bound_in_batch(values: list[Value]) -> list[list[bytes | None]]:
    """Return the values of each statement of a batch; a number says how many it has."""
    rest = iter(values)
    bound = []
    for count in rest:
        bound.append([cast(bytes | None, next(rest)) for _ in range(cast(int, count))])
    return bound


def _bound(options: bytes, version: int) -> list[bytes | None]:
    """Return the values among a request's options.

    They travel as consistency, flags, the number of values, and each value after its length.
    """
    at = _OLD_FLAGS_END if version < _NEW_VERSION else _NEW_FLAGS_END
    if not options[at - 1] & _HAS_VALUES:
        return []
    count = int.from_bytes(options[at : at + 2])
    at += 2
    values: list[bytes | None] = []
    for _ in range(count):
        size = int.from_bytes(options[at : at + 4], signed=True)
        at += 4
        values.append(options[at : at + size] if size >= 0 else None)
        at += max(0, size)
    return values


class _Document:
    """A document that is read from its beginning to its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def fields(self) -> dict[str, list[Value]]:
        """Return the values of each name, in their order."""
        fields: dict[str, list[Value]] = {}
        values = fields.setdefault("", [])
        while self._at < len(self._data):
            code = self._number(1)
            if code == _LONG_NAME or _SHORT_NAME <= code < _SHORT_TEXT:
                values = fields.setdefault(self._string(code), [])
            elif code in _PASSED_OVER:
                self._at += _PASSED_OVER[code]
            elif code == _LONG_PADDING:
                padding = self._number(4)
                self._at += padding
            else:
                values.append(self._value(code))
        return fields

    def _value(self, code: int) -> Value:
        if code < _FIRST_CODE:
            return code
        if code in _SIZES:
            return self._bytes(_SIZES[code])
        if code in _INTEGERS:
            return self._integer(code)
        if code == _NULL:
            return None
        if code == _LONG_TEXT or code >= _SHORT_TEXT:
            return self._string(code)
        raise HarnessError(
            f"Cassandra's query log holds 0x{code:02x}, which the harness cannot read"
        )

    def _number(self, size: int) -> int:
        """Return an unsigned number of `size` bytes, the lowest first."""
        self._at += size
        return int.from_bytes(self._data[self._at - size : self._at], "little")

    def _integer(self, code: int) -> int:
        size = _INTEGERS[code]
        value = self._number(size)
        is_negative = code not in _UNSIGNED and value >= 1 << 8 * size - 1
        return value - (1 << 8 * size) if is_negative else value

    def _bytes(self, length_bytes: int) -> bytes:
        """Return the bytes after a length and a byte for their type."""
        size = self._number(length_bytes)
        found = self._data[self._at + 1 : self._at + size]
        self._at += size
        return found

    def _string(self, code: int) -> str:
        """Return a name or a text; a short one has its length in its code."""
        size = code & _SHORT_LENGTH if code >= _SHORT_NAME else self._length()
        text = self._data[self._at : self._at + size].decode(errors="replace")
        self._at += size
        return text

    def _length(self) -> int:
        """Return a length of seven bits a byte, the lowest first.

        The eighth bit says whether more bytes follow.
        """
        part = self._number(1)
        return part & 0x7F | (self._length() << 7 if part & 0x80 else 0)
