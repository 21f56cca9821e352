"""clients, tickers, holdings: a table joined with a table, each result with the two records that it was made from.

`clients`: `client-positions` (key = client; ``{"client", "positions"}``) joined with `client-details` (key = client; ``{"client",
"name", "surname", "email"}``), inner, both sides live.
`tickers`: `positions` (key = positionId; ``{"positionId", "client", "ticker", "amount"}``) joined with `tickers` (key = ticker;
``{"ticker", "exchange", "name", "founded"}``), inner, broadcast: the reference is what lies below the read_committed end of
`tickers` when an instance is told to start, and all of it is read before the first position.
`holdings`: the same two tables, left outer, both sides live. Parameter delete_retention_ms: how long a design that filters late
results remembers a deletion.

All write `joined`, keyed as the left table: ``{"left": {…}, "right": {…} | null, "from": {"left": "role-p@o", "right":
"role-p@o" | null}}``, with role names, and of each row the fields named above. Amount, founded and positions are integers,
a ticker may be null, everything else is text. A row that goes, or that has no result any more, leaves a tombstone: at most
one for each deletion, and none is needed where no result was visible. Results between two pauses of the input may be
skipped, none may be invented; per key no result follows one with a newer left record, and for one left record none follows
one with a newer right. A tombstone for an unknown key changes nothing. A record with a null key, or that cannot be read,
stops the design: `poison`.
Parameters: commit_interval_ms.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from types import NoneType
from typing import Any, Final

from streamgate.history.events import Record
from streamgate.programs.contract import GONE, NOTHING, Diagnose, Diagnosis, Program, State, States, Unreadable

Row = tuple[Any, ...]
TEXT, NUMBER, NUMBERS, TEXT_OR_NULL = "text", "integer", "list of integers", "text or null"


@dataclass(frozen=True)
class Table:
    """One side: its role, its fields, the first of which is the key."""

    role: str
    fields: dict[str, str]

    def row(self, value: object, where: str) -> Row:
        """The named fields of a row; Unreadable where one is missing or of another type."""
        if not isinstance(value, dict) or not all(
            _is(value.get(name, ...), kind) for name, kind in self.fields.items()
        ):
            raise Unreadable(f"{where} is no row of {self.role}: {self.fields}")
        return tuple(tuple(value[name]) if kind == NUMBERS else value[name] for name, kind in self.fields.items())

    def read(self, record: Record) -> Row | None:
        """What an input record says; None is a tombstone."""
        if record.key is None:
            raise Unreadable(f"{record.at} has no key")
        if record.value is None:
            return None
        try:
            row = self.row(json.loads(record.value), record.at)
        except ValueError as error:
            raise Unreadable(f"{record.at} is no row of {self.role}: {error}") from None
        if row[0].encode() != record.key:
            raise Unreadable(f"{record.at} has another key than its value")
        return row

    def place(self, record: Record) -> str:
        """The record's position under the role's name."""
        return f"{self.role}-{record.partition}@{record.offset}"


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


def model(join: Join, inputs: Iterable[Record]) -> States:
    """Every result that a key may show, by left record and then by the right ones that it may have met.

    That order is the order that results have to keep. Two topics have no order between them, so a left record may
    meet any state of its partner, the one before its first record too; the last state is the join of the final tables.
    """
    lefts: dict[bytes, list[Record]] = {}
    rights: dict[bytes, list[Record]] = {}
    for record in inputs:
        (rights if join.is_right(record) else lefts).setdefault(record.key or b"", []).append(record)
    rows = {id(record): join.right.read(record) for records in rights.values() for record in records}
    states: States = {}
    for key, records in lefts.items():
        for record in records:
            row = join.left.read(record)
            partner = None if row is None else join.partner(row)
            met: list[Record | None] = [None, *rights.get(partner, ())] if partner is not None else [None]
            for right in met[-1:] if join.broadcast else met:
                other = None if right is None else rows[id(right)]
                states.setdefault(key, []).append(
                    State(
                        key, _result(join, record, row, right, other), record, (), "", None if join.broadcast else right
                    )
                )
    return states


def _result(join: Join, record: Record, row: Row | None, right: Record | None, other: Row | None) -> Row:
    if row is None or (other is None and not join.outer):
        # Nothing was deleted where the partner has never been there; a broadcast join cannot tell, and may say it.
        return GONE if row is None or right is not None or join.broadcast else NOTHING
    place = join.right.place(right) if right is not None and other is not None else None
    return (join.left.place(record), place, row, other)


def value_of(join: Join, record: Record) -> Row:
    """What an output says; GONE for a tombstone, Unreadable where it is no result of the contract."""
    if record.value is None:
        return GONE
    try:
        value = json.loads(record.value)
        places, left, right = value["from"], value["left"], value["right"]
        at, beside = places["left"], places["right"]
        fields = set(value), set(places), set(left), set(right or ())
    except (ValueError, KeyError, TypeError) as error:
        raise Unreadable(f"{record.at} is no result of the contract: {error!r}") from None
    of_right = set() if right is None else set(join.right.fields)
    named = {"left", "right", "from"}, {"left", "right"}, set(join.left.fields), of_right
    if fields != named or not isinstance(at, str) or not isinstance(beside, NoneType if right is None else str):
        raise Unreadable(f"{record.at} has other fields than left, right, from and those of the two tables")
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
        for place, row, table in ((value[0], value[2], join.left), (value[1], value[3], join.right)):
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
        why = f"does not refer to {value[1]}" if right else "has no partner, and the join is an inner one"
        return Diagnosis("phantom", f"{value[0]} {why if left.key == key else 'is of another key'}", right or left)

    return diagnose


_POSITIONS: Final = Table("positions", {"positionId": TEXT, "client": TEXT, "ticker": TEXT_OR_NULL, "amount": NUMBER})
_TICKERS: Final = Table("tickers", {"ticker": TEXT, "exchange": TEXT, "name": TEXT, "founded": NUMBER})
_HELD: Final = Table("client-positions", {"client": TEXT, "positions": NUMBERS})
_DETAILS: Final = Table("client-details", {"client": TEXT, "name": TEXT, "surname": TEXT, "email": TEXT})
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
            lineage_of=lambda _: (None, ()),
            diagnosis=partial(diagnosis, join),
        )


CLIENTS, TICKERS, HOLDINGS = _programs()
