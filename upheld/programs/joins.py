"""clients, tickers, holdings: a table joined with a table, each result with the two records that it
was made from.

`clients`: `client-positions` (key = client; ``{"client", "positions"}``) joined with
`client-details` (key = client; ``{"client", "name", "surname", "email"}``), inner, both sides live.

`tickers`: `positions` (key = positionId; ``{"positionId", "client", "ticker", "amount"}``) joined
with `tickers` (key = ticker; ``{"ticker", "exchange", "name", "founded"}``), inner, broadcast: the
reference is what lies below the read_committed end of `tickers` when an instance is told to start,
and all of it is read before the first position.

`holdings`: the same two tables, left outer, both sides live. Parameter delete_retention_ms: how
long a design that filters late results remembers a deletion.

All write `joined`, keyed as the left table: ``{"left": {…}, "right": {…} | null, "from": {"left":
"role-p@o", "right": "role-p@o" | null}}``, with role names, and of each row the fields named above.
Amount, founded and positions are integers, a ticker may be null, everything else is text. A row
that goes, or that has no result any more, leaves a tombstone: at most one for each deletion, and
none is needed where no result was visible. Results between two pauses of the input may be skipped,
none may be invented; per key no result follows one with a newer left record, and for one left
record none follows one with a newer right. A tombstone for an unknown key changes nothing. A record
with a null key, or that cannot be read, stops the design: `poison`.

Parameters: commit_interval_ms.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import itemgetter
from types import NoneType
from typing import Any, Final, NamedTuple

from upheld.history.events import Record
from upheld.programs.contract import (
    GONE,
    NOTHING,
    Diagnose,
    Diagnosis,
    Program,
    State,
    States,
    Unreadable,
    loaded,
)

Row = tuple[Any, ...]
ROWS_KEPT: Final = 1 << 14  # of inputs: the rows of a run read the same ones
TEXT, NUMBER, NUMBERS, TEXT_OR_NULL = "text", "integer", "list of integers", "text or null"


@dataclass(frozen=True, eq=False)
class Table:
    """One side: its role, its fields, the first of which is the key."""

    role: str
    fields: dict[str, str]

    def row(self, value: object, where: str) -> Row:
        """The named fields of a row; Unreadable where one is missing or of another type."""
        named = [value.get(name, ...) for name in self.fields] if isinstance(value, dict) else []
        if not named or not all(map(_is, named, self.fields.values())):
            raise Unreadable(f"{where} is no row of {self.role}: {self.fields}")
        return tuple([tuple(each) if isinstance(each, list) else each for each in named])

    def read(self, record: Record) -> Row | None:
        """What an input record says; None is a tombstone."""
        if record.key is None:
            raise Unreadable(f"{record.at} has no key")
        if record.value is None:
            return None
        row = _read(self, record.key, record.value)
        if isinstance(row, Unreadable):
            raise Unreadable(f"{record.at} {row.why}")
        return row

    def place(self, record: Record) -> str:
        """The record's position under the role's name."""
        return f"{self.role}-{record.partition}@{record.offset}"


@lru_cache(ROWS_KEPT)
def _read(table: Table, key: bytes, value: bytes) -> Row | Unreadable:
    """Read a row of an input, or say why it is none."""
    try:
        row = table.row(loaded(value), "")
    except Unreadable as error:
        return Unreadable(error.why.strip())
    except ValueError as error:
        return Unreadable(f"is no row of {table.role}: {error}")
    return row if row[0].encode() == key else Unreadable("has another key than its value")


def _is(value: object, kind: str) -> bool:
    if kind == NUMBERS:
        return isinstance(value, list) and all(type(each) is int for each in value)
    if kind == NUMBER:
        return type(value) is int
    return isinstance(value, str) or (kind == TEXT_OR_NULL and value is None)


@dataclass(frozen=True)
class Join:
    """Which tables are joined on which field of the left one, and how."""

    left: Table
    right: Table
    on: str
    outer: bool = False
    broadcast: bool = False

    def partner(self, row: Row) -> bytes | None:
        """The key of the right row that this left one refers to."""
        key = row[list(self.left.fields).index(self.on)]
        return None if key is None else str(key).encode()

    def is_right(self, record: Record) -> bool:
        """Which of the two topics a record lies in."""
        return record.topic.endswith(f"-{self.right.role}")


class Met(NamedTuple):
    """A right record that a left one may have met, or none: its place where it is a row, and the
    row.
    """

    record: Record | None
    place: str | None
    row: Row | None


ALONE: Final = Met(None, None, None)


def model(join: Join, inputs: Iterable[Record]) -> States:
    """Every result that a key may show, by left record and then by the right ones that it may have
    met.

    That order is the order that results have to keep. Two topics have no order between them, so a
    left record may meet any state of its partner, the one before its first record too; the last
    state is the join of the final tables.
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
    """Make the states of one left record: alone, then with each right record that it refers to."""
    key, row = record.key or b"", join.left.read(record)
    partner = None if row is None else join.partner(row)
    met = [ALONE] if partner is None else [ALONE, *rights.get(partner, ())]
    if join.broadcast:
        met = met[-1:]
    place = join.left.place(record)
    return [
        State(
            key,
            (place, right.place, row, right.row)
            if row is not None and (right.row or join.outer)
            else _silence(join, row, right),
            record,
            (),
            "",
            None if join.broadcast else right.record,
        )
        for right in met
    ]


def _silence(join: Join, row: Row | None, right: Met) -> Row:
    """Say what is due where there is no result: a tombstone, or nothing where nothing was there to
    be deleted.
    """
    # Nothing was deleted where the partner has never been there; a broadcast join cannot tell, and
    # may say it.
    return GONE if row is None or right.record is not None or join.broadcast else NOTHING


def value_of(join: Join, record: Record) -> Row:
    """What an output says; GONE for a tombstone, Unreadable where it is no result of the
    contract.
    """
    if record.value is None:
        return GONE
    try:
        value = loaded(record.value)
        places, left, right = value["from"], value["left"], value["right"]
        at, beside = places["left"], places["right"]
        fields = set(value), set(places), set(left), set(right or ())
    except (ValueError, KeyError, TypeError) as error:
        raise Unreadable(f"{record.at} is no result of the contract: {error!r}") from None
    of_right = set() if right is None else set(join.right.fields)
    named = {"left", "right", "from"}, {"left", "right"}, set(join.left.fields), of_right
    if (
        fields != named
        or not isinstance(at, str)
        or not isinstance(beside, NoneType if right is None else str)
    ):
        raise Unreadable(
            f"{record.at} has other fields than left, right, from and those of the two tables"
        )
    row = join.left.row(left, record.at)
    if row[0].encode() != record.key:
        raise Unreadable(f"{record.at} has another key than its left row")
    return at, beside, row, None if right is None else join.right.row(right, record.at)


def diagnosis(join: Join, inputs: list[Record]) -> Diagnose:
    """Name the anomaly of a result that no pair of records gives."""
    by_place = {(join.right if join.is_right(r) else join.left).place(r): r for r in inputs}

    def diagnose(key: bytes, value: Row, _: list[State]) -> Diagnosis:
        if value == GONE:
            return Diagnosis("phantom", "there was nothing to delete")
        for place, row, table in (
            (value[0], value[2], join.left),
            (value[1], value[3], join.right),
        ):
            if place is None:
                continue
            record = by_place.get(place)
            if record is None:
                return Diagnosis("phantom", f"no record stands at {place}")
            if not record.visible:
                return Diagnosis("uncommitted-visible", f"{place} was aborted upstream", record)
            try:
                said = table.read(record)
            except Unreadable as error:
                return Diagnosis("phantom", error.why, record)
            if said != row:
                return Diagnosis("phantom", f"{place} says something else", record)
        left, right = by_place[value[0]], by_place.get(value[1])
        why = (
            f"does not refer to {value[1]}"
            if right
            else "has no partner, and the join is an inner one"
        )
        return Diagnosis(
            "phantom",
            f"{value[0]} {why if left.key == key else 'is of another key'}",
            right or left,
        )

    return diagnose


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
            contract=__doc__,
            reads=join.left.role,
            beside=join.right.role,
            broadcast=join.broadcast,
            writes="joined",
            conflates=True,
            parameters=parameters,
            model=partial(model, join),
            value_of=partial(value_of, join),
            address=itemgetter(slice(2)),  # the places of the two records
            lineage_of=lambda _: (None, ()),
            diagnosis=partial(diagnosis, join),
        )


CLIENTS, TICKERS, HOLDINGS = _programs()
