"""clients, tickers, holdings: a table joined with a table.

Each result names the two records that it was made from.

`clients`: `client-positions` (key = client; ``{"client", "positions"}``) joined with
`client-details` (key = client; ``{"client", "name", "surname", "email"}``), inner, both sides live.

`tickers`: `positions` (key = positionId; ``{"positionId", "client", "ticker", "amount"}``) joined
with `tickers` (key = ticker; ``{"ticker", "exchange", "name", "founded"}``), inner, broadcast. The
reference is the part of `tickers` below its read_committed end when an instance is told to start.
All of it is read before the first position.

`holdings`: the same two tables, left outer, both sides live. Its parameter delete_retention_ms is
how long a design that filters late results remembers a deletion.

The records of both tables lie where Kafka's default partitioner puts their keys (murmur2). So a
ticker that a position names is found in one partition of `tickers`, if it is there. The default
partitioner of librdkafka, and of clients built on it, is another one (CRC32).

All write `joined`, keyed as the left table: ``{"left": {…}, "right": {…} | null, "from": {"left":
"role-p@o", "right": "role-p@o" | null}}``, with role names, and of each row the fields named above.
Amount, founded and positions are integers, a ticker may be null, everything else is text.

A row that goes, or that has no result any more, leaves a tombstone: at most one for each deletion.
None is needed if no result was visible. Results between two pauses of the input may be skipped,
none may be invented. Per key no result follows one with a newer left record, and for one left
record none follows one with a newer right record. A result may be written again as it is, under
exactly_once too, if no other result or tombstone of its key stands between. So an update need not
emit just once. A tombstone for an unknown key changes nothing. A record with a null key, or that
cannot be read, stops the design: `poison`.

Parameters: commit_interval_ms.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import itemgetter
from types import NoneType
from typing import Final, NamedTuple

from upheld.history.events import Record
from upheld.programs.contract import (
    GONE,
    NOTHING,
    Diagnosis,
    Program,
    State,
    States,
    Unreadable,
    Value,
    made,
    no_lineage,
)
from upheld.reading import loaded

Row = tuple[object, ...]  # the fields of a table, in its order
ROWS_KEPT: Final = 1 << 14  # of inputs: the rows of a run read the same ones
# The types of fields.
TEXT: Final = "text"
NUMBER: Final = "integer"
NUMBERS: Final = "list of integers"
TEXT_OR_NULL: Final = "text or null"


@dataclass(frozen=True, eq=False)
class Table:
    """One side of a join: its role, and its fields, the first of which is the key."""

    role: str
    fields: dict[str, str]

    def row(self, value: object, where: str) -> Row:
        """Return the named fields of a row; `where` is its place, for a refusal.

        Raises:
            Unreadable: A field is missing or of another type.
        """
        named = [value.get(name, ...) for name in self.fields] if isinstance(value, dict) else []
        if not named or not all(map(_is, named, self.fields.values())):
            raise Unreadable(f"{where} is no row of {self.role}: {self.fields}")
        return tuple([tuple(each) if isinstance(each, list) else each for each in named])

    def read(self, record: Record) -> Row | None:
        """Return the row of an input record; None for a tombstone.

        Raises:
            Unreadable: The record has no key, or holds no row.
        """
        if record.key is None:
            raise Unreadable(f"{record.at} has no key")
        if record.value is None:
            return None
        row = _read(self, record.key, record.value)
        if isinstance(row, Unreadable):
            raise Unreadable(f"{record.at} {row.why}")
        return row

    def place(self, record: Record) -> str:
        """Return the record's position under the role's name."""
        return f"{self.role}-{record.partition}@{record.offset}"


@lru_cache(ROWS_KEPT)
def _read(table: Table, key: bytes, value: bytes) -> Row | Unreadable:
    """Read a row of an input, or return why it is none."""
    try:
        row = table.row(loaded(value), "")
    except Unreadable as error:
        return Unreadable(error.why.strip())
    except ValueError as error:
        return Unreadable(f"is no row of {table.role}: {error}")
    return row if _key(row) == key else Unreadable("has another key than its value")


def _key(row: Row) -> bytes:
    """Return the key of a row: its first field, which is text."""
    return str(row[0]).encode()


def _is(value: object, kind: str) -> bool:
    """Return whether a field has its type."""
    if kind == NUMBERS:
        return isinstance(value, list) and all(type(each) is int for each in value)
    if kind == NUMBER:
        return type(value) is int
    return isinstance(value, str) or (kind == TEXT_OR_NULL and value is None)


@dataclass(frozen=True)
class Join:
    """The tables of a join, the left field that refers to the right one, the kind."""

    left: Table
    right: Table
    on: str
    outer: bool = False
    broadcast: bool = False

    def partner(self, row: Row) -> bytes | None:
        """Return the key of the right row that a left row refers to.

        It is None if the left row refers to none.
        """
        key = row[list(self.left.fields).index(self.on)]
        return None if key is None else str(key).encode()

    def is_right(self, record: Record) -> bool:
        """Return whether a record lies in the right table's topic."""
        return record.topic.endswith(f"-{self.right.role}")


class Met(NamedTuple):
    """A right record that a left record may have met, or none.

    ``place`` and ``row`` are None if the record is a tombstone.
    """

    record: Record | None
    place: str | None
    row: Row | None


class Joined(NamedTuple):
    """The value of a result: the places of the two records, and their rows."""

    left_at: str
    right_at: str | None
    left: Row
    right: Row | None


ALONE: Final = Met(None, None, None)


def model(join: Join, inputs: Iterable[Record]) -> States:
    """Make every result that a key may show, in the order that results have to keep.

    They are sorted by left record, and then by the right records that it may have met. Two topics
    have no order between them. So a left record may meet any state of its partner, also the one
    before the partner's first record. The last state is the join of the final tables.
    """
    lefts: dict[bytes, list[Record]] = {}
    rights: dict[bytes, list[Met]] = {}
    for record in inputs:
        if join.is_right(record):
            row = join.right.read(record)
            place = None if row is None else join.right.place(record)
            rights.setdefault(record.key or b"", []).append(Met(record, place, row))
        else:
            lefts.setdefault(record.key or b"", []).append(record)
    states: States = {}
    for key, records in lefts.items():
        states[key] = []
        for record in records:
            states[key] += _met(join, record, rights)
    return states


def _met(join: Join, record: Record, rights: dict[bytes, list[Met]]) -> list[State]:
    """Make the states of a left record: alone, then with each right one it refers to."""
    key = record.key or b""
    row = join.left.read(record)
    partner = None if row is None else join.partner(row)
    met = [ALONE] if partner is None else [ALONE, *rights.get(partner, ())]
    if join.broadcast:
        met = met[-1:]
    place = join.left.place(record)
    return [
        made(
            State,
            (
                key,
                made(Joined, (place, right.place, row, right.row))
                if row is not None and (right.row or join.outer)
                else _silence(join, row, right),
                record,
                (),
                "",
                None if join.broadcast else right.record,
            ),
        )
        for right in met
    ]


def _silence(join: Join, row: Row | None, right: Met) -> Value:
    """Return the value that is due without a result: a tombstone, or nothing.

    Nothing is due if the partner has never been there: no result could be deleted. A broadcast join
    cannot tell that, and may write a tombstone.
    """
    return GONE if row is None or right.record is not None or join.broadcast else NOTHING


def value_of(join: Join, record: Record) -> Value:
    """Return the value of an output; GONE for a tombstone.

    Raises:
        Unreadable: The record is no result of the contract.
    """
    if record.value is None:
        return GONE
    try:
        value = loaded(record.value)
        places = value["from"]
        left = value["left"]
        right = value["right"]
        at = places["left"]
        beside = places["right"]
        fields = [set(value), set(places), set(left), set(right or ())]
    except (ValueError, KeyError, TypeError) as error:
        raise Unreadable(f"{record.at} is no result of the contract: {error!r}") from None
    of_right = set() if right is None else set(join.right.fields)
    due = [{"left", "right", "from"}, {"left", "right"}, set(join.left.fields), of_right]
    are_texts = isinstance(at, str) and isinstance(beside, NoneType if right is None else str)
    if fields != due or not are_texts:
        raise Unreadable(
            f"{record.at} has other fields than left, right, from and those of the two tables"
        )
    row = join.left.row(left, record.at)
    if _key(row) != record.key:
        raise Unreadable(f"{record.at} has another key than its left row")
    return Joined(at, beside, row, None if right is None else join.right.row(right, record.at))


class Diagnostician:
    """Names the anomaly of a result that no pair of records gives."""

    def __init__(self, join: Join, inputs: list[Record]) -> None:
        self._join = join
        self._by_place = {
            (join.right if join.is_right(record) else join.left).place(record): record
            for record in inputs
        }

    def __call__(self, key: bytes, value: Value, _: list[State]) -> Diagnosis:
        """Look at the records that the result names, then at what joins them."""
        if value == GONE:
            return Diagnosis("phantom", "there was nothing to delete")
        result = Joined._make(value)
        fault = self._fault(result.left_at, result.left, self._join.left) or self._fault(
            result.right_at, result.right, self._join.right
        )
        if fault:
            return fault
        left = self._by_place[result.left_at]
        right = self._by_place.get(result.right_at or "")
        why = "has no partner, and the join is an inner one"
        if right:
            why = f"does not refer to {result.right_at}"
            if self._join.broadcast and self._join.partner(result.left) == right.key:
                why = f"met {result.right_at}, and the reference says something later"
        if left.key != key:
            why = "is of another key"
        return Diagnosis("phantom", f"{result.left_at} {why}", right or left)

    def _fault(self, place: str | None, row: Row | None, table: Table) -> Diagnosis | None:
        """Name the anomaly of one side.

        There is none if a visible record says this row, or if no record is named.
        """
        if place is None:
            return None
        record = self._by_place.get(place)
        if record is None:
            return Diagnosis("phantom", f"no record stands at {place}")
        if not record.visible:
            return Diagnosis("uncommitted-visible", f"{place} was aborted upstream", record)
        try:
            is_same = table.read(record) == row
        except Unreadable as error:
            return Diagnosis("phantom", error.why, record)
        return None if is_same else Diagnosis("phantom", f"{place} says something else", record)


_POSITIONS: Final = Table(
    "positions", {"positionId": TEXT, "client": TEXT, "ticker": TEXT_OR_NULL, "amount": NUMBER}
)
_TICKERS: Final = Table(
    "tickers", {"ticker": TEXT, "exchange": TEXT, "name": TEXT, "founded": NUMBER}
)
_HELD: Final = Table("client-positions", {"client": TEXT, "positions": NUMBERS})
_DETAILS: Final = Table(
    "client-details", {"client": TEXT, "name": TEXT, "surname": TEXT, "email": TEXT}
)
JOINS: Final = {
    "clients": Join(_HELD, _DETAILS, "client"),
    "tickers": Join(_POSITIONS, _TICKERS, "ticker", broadcast=True),
    "holdings": Join(_POSITIONS, _TICKERS, "ticker", outer=True),
}


def _programs() -> Iterator[Program]:
    for name, join in JOINS.items():
        parameters: dict[str, int | str] = {"commit_interval_ms": 100}
        if name == "holdings":
            parameters["delete_retention_ms"] = 60_000
        yield Program(
            name=name,
            reads=join.left.role,
            beside=join.right.role,
            broadcast=join.broadcast,
            writes="joined",
            conflates=True,
            repeats=True,
            parameters=parameters,
            model=partial(model, join),
            value_of=partial(value_of, join),
            address=itemgetter(slice(2)),  # the places of the two records
            lineage_of=no_lineage,
            diagnosis=partial(Diagnostician, join),
        )


CLIENTS, TICKERS, HOLDINGS = _programs()
