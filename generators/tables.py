"""Changes of two tables that are joined.

Rows come, change, refer to another partner, go and come again, in bursts. Each row and each partner
lies where Kafka's default partitioner puts its key. Aborted attempts stand between the changes that
count, and end every partition. One seed, asked for the same changes in the same order, makes the
same bytes in any process.
"""

import json
import math
import random
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Final, NamedTuple, NotRequired, TypedDict, Unpack

from faker import Faker

from upheld.generators.ledger import EPOCH_MS, KEPT, Send, drawn, zipf
from upheld.generators.placement import partition_of, placed

EXCHANGES: Final = ("NASDAQ", "LON", "XETRA", "BME")
_BURST: Final = 0.3  # how many changes of a row are followed at once by another one of it
_RIGHT: Final = 0.1  # how many changes are the partner table's
_AMOUNTS: Final = (0, -5, 2**53 + 1, *range(1, 500))
_ABORTED: Final = 4  # transactions that come to nothing before the last one


class Size(TypedDict):
    """How large two tables are; a topic has 4 partitions if it is not said."""

    rows: int
    partners: int
    partitions: NotRequired[int]
    beside: NotRequired[int]


class _MadeFrom(NamedTuple):
    """The seed and the program of tables, and the numbers of `Size`."""

    seed: int
    program: str
    rows: int
    partners: int
    partitions: int = 4
    beside: int = 4


class Tables:
    """Both tables of a workload as they stand after the changes made so far.

    `partitions` are those of the first topic, `beside` those of the second one.
    """

    def __init__(self, seed: int, program: str, **size: Unpack[Size]) -> None:
        made_from = _MadeFrom(seed, program, **size)
        rows = made_from.rows
        partners = made_from.partners
        if not 1 <= partners <= rows:
            raise ValueError(f"{rows} rows are not enough for {partners} partners")
        # While they are new.
        self._made_from: _MadeFrom | None = made_from
        self.is_same_key = program == "clients"
        self._is_broadcast = program == "tickers"
        self.roles = (
            ("client-positions", "client-details") if self.is_same_key else ("positions", "tickers")
        )
        self.partitions = (made_from.partitions, made_from.beside)
        self._rng = random.Random(seed)
        self._fake = Faker("en_GB")
        self._fake.seed_instance(seed)
        self._clock_ms = EPOCH_MS + seed % 500_000 * 60_000
        if self.is_same_key:
            slots = math.lcm(*self.partitions)  # one key lies in two topics
            self._keys = [placed(f"client-{number:05}", number, slots) for number in range(rows)]
            self._partners = self._keys
        else:
            self._keys = [self._position(number) for number in range(rows)]
            self._partners = [
                placed(f"{self._fake.lexify('????').upper()}{number}", number, made_from.beside)
                for number in range(partners)
            ]
        self._clients = [f"client-{number:03}" for number in range(max(1, rows // 8))]
        self._weights = zipf(len(self._partners), exponent=0.6)
        self._passing = range(0)
        self.left: dict[int, dict[str, Any]] = {}  # the rows that are there now
        self.right: dict[int, dict[str, Any]] = {}

    def changes(self, count: int, *, aborted: bool = True) -> list[Send]:
        """Make `count` changes of the first table, and a tenth as many of the second.

        If `aborted`, aborted attempts stand between them. The reference of a broadcast join is
        there from the first changes on, and stays as it is. Instances read it at their start, and
        none of them could know of a later one.
        """
        if self._made_from is None:
            return self._changes(count, aborted=aborted)
        sends, tables = _first_changes(self._made_from, count, aborted=aborted)
        self._become(tables)
        return list(sends)

    def _become(self, other: "Tables") -> None:
        """Go on from where other tables are, made from the same seed."""
        self._made_from = None
        self._rng.setstate(other._rng.getstate())
        self._fake.random.setstate(other._fake.random.getstate())
        self._clock_ms = other._clock_ms
        self.left = dict(other.left)
        self.right = dict(other.right)

    def _changes(self, count: int, *, aborted: bool) -> list[Send]:
        sends: list[Send] = []
        stations = {self._rng.randrange(count) for _ in range(_ABORTED)} if aborted else set()
        transaction = 0
        made = 0
        stands = self._is_broadcast and bool(self.right)
        if not self.right:  # most of the partners are there before anybody refers to them
            sends += [
                self._partner(number)
                for number in range(len(self._partners))
                if self._rng.random() < 0.7
            ]
        while made < count:
            if not stands and self._rng.random() < _RIGHT:
                sends.append(self._partner(self._draw()))
                continue
            row = self._rng.randrange(len(self._keys))
            for _ in range(1 + (self._rng.random() < _BURST) * self._rng.randint(1, 2)):
                if made in stations:
                    stations.discard(made)
                    sends += self._attempt(transaction, stands=stands)
                    transaction += 1
                sends.append(self._change(row))
                made += 1
        if aborted:
            sends += self._attempt(transaction, everywhere=True, stands=stands)
        return sends

    def moves(self) -> list[Send]:
        """Have every row refer to another partner than now."""
        return [
            self._put(row, self._row(row, avoid=self.left[row]["ticker"]))
            for row in sorted(self.left)
        ]

    def deletions(self) -> list[Send]:
        """Delete every row."""
        return [self._put(row, None) for row in sorted(self.left)]

    def more(self, count: int) -> list[Send]:
        """Insert `count` rows beyond the others."""
        rows = range(len(self._keys), len(self._keys) + count)
        self._keys += map(self._position, rows)
        self._passing = rows
        return [self._put(row, self._row(row)) for row in rows]

    def no_more(self) -> list[Send]:
        """Delete the rows that `more` inserted, for good.

        Every partner changes in between, so that results of the rows are still on their way.
        """
        sends = list[Send]()
        apart = max(1, len(self._passing) // len(self._partners))
        for number, row in enumerate(self._passing):
            sends.append(self._put(row, None))
            if number % apart == 0 and number // apart < len(self._partners):
                sends.append(self._put_partner(number // apart, gone=False))
        del self._keys[self._passing.start :]
        return sends

    def insertions(self) -> list[Send]:
        """Insert every row that is not there."""
        return [
            self._put(row, self._row(row)) for row in range(len(self._keys)) if row not in self.left
        ]

    def partner_changes(self) -> list[Send]:
        """Change every partner, or insert it."""
        return [self._put_partner(number, gone=False) for number in range(len(self._partners))]

    def partner_deletions(self) -> list[Send]:
        """Delete every partner."""
        return [self._put_partner(number, gone=True) for number in sorted(self.right)]

    def _position(self, row: int) -> str:
        """Return the key of a row."""
        return placed(f"position-{row:05}", row, self.partitions[0])

    def _draw(self) -> int:
        return drawn(self._rng, self._weights)

    def _change(self, row: int) -> Send:
        """Return the next change of a row.

        A row comes, changes, refers to another partner, or goes.
        """
        if row not in self.left:
            # A tombstone for a key that is not there is legal, and occurs now and then.
            return self._put(row, None if self._rng.random() < 0.02 else self._row(row))
        fate = self._rng.random()
        if fate < 0.3:
            return self._put(row, None)
        keep = fate < 0.6 and not self.is_same_key
        return self._put(
            row, self._row(row) | ({"ticker": self.left[row]["ticker"]} if keep else {})
        )

    def _partner(self, number: int) -> Send:
        return self._put_partner(number, gone=number in self.right and self._rng.random() < 0.25)

    def _row(self, row: int, avoid: str | None = "") -> dict[str, Any]:
        if self.is_same_key:
            return {
                "client": self._keys[row],
                "positions": self._rng.sample(range(100), self._rng.randint(0, 4)),
            }
        known = self._partners[self._draw()]
        strange = self._rng.random()
        named = known if strange > 0.08 else None if strange < 0.04 else f"UNKNOWN{row % 7}"
        return {
            "positionId": self._keys[row],
            "client": self._rng.choice(self._clients),
            "ticker": next(name for name in chain((named, known), self._partners) if name != avoid),
            "amount": self._rng.choice(_AMOUNTS),
        }

    def _put(self, row: int, value: dict[str, Any] | None, transaction: int | None = None) -> Send:
        if transaction is None:
            self.left[row] = value or {}
            if value is None:
                del self.left[row]
        return self._send(0, row, self._keys[row], value, transaction)

    def _put_partner(self, number: int, *, gone: bool, transaction: int | None = None) -> Send:
        value = None if gone else self._details(self._partners[number])
        if transaction is None:
            self.right[number] = value or {}
            if value is None:
                del self.right[number]
        return self._send(1, number, self._partners[number], value, transaction)

    def _details(self, name: str) -> dict[str, Any]:
        fake = self._fake
        if self.is_same_key:
            return {
                "client": name,
                "name": fake.first_name(),
                "surname": fake.last_name(),
                "email": fake.email(),
            }
        exchange = self._rng.choice(EXCHANGES)
        founded = self._rng.randint(1600, 2026)
        return {"ticker": name, "exchange": exchange, "name": fake.company(), "founded": founded}

    def _attempt(self, transaction: int, *, stands: bool, everywhere: bool = False) -> list[Send]:
        """Make one transaction that is aborted.

        It has some rows and partners, or if `everywhere` a row and a partner in every partition.
        It has no partner if their table `stands`.
        """
        picked = (
            range(max(self.partitions))
            if everywhere
            else self._rng.sample(range(len(self._partners)), 1)
        )
        sends = [
            self._put(row, self._row(row), transaction) for row in picked if row < len(self._keys)
        ]
        if stands:
            return sends
        return sends + [
            self._put_partner(n, gone=False, transaction=transaction)
            for n in picked
            if n < len(self._partners)
        ]

    def _send(
        self,
        side: int,
        number: int,
        key: str,
        value: dict[str, Any] | None,
        transaction: int | None,
    ) -> Send:
        self._made_from = None
        self._clock_ms += self._rng.randint(1, 5)
        return Send(
            key=key.encode(),
            value=None if value is None else json.dumps(value, ensure_ascii=False).encode(),
            headers=(),
            timestamp_ms=self._clock_ms,
            partition=number % self.partitions[side],
            transaction=transaction,
            role=self.roles[side],
        )


@lru_cache(maxsize=KEPT)
def _first_changes(
    made_from: _MadeFrom, count: int, *, aborted: bool
) -> tuple[tuple[Send, ...], Tables]:
    """Make the first changes of tables, and return the tables after them too.

    Most rows of a run begin with the same changes, so they are kept.
    """
    tables = Tables(**made_from._asdict())
    return tuple(tables._changes(count, aborted=aborted)), tables


def written(role: str, table: Sequence[Sequence[str]], partitions: int) -> list[Send]:
    """Return the records of a table as it stands in a feature.

    The table has a head, then rows. The first cell of a row is its key; a row without any other
    cell is a tombstone. `amount` and `founded` are integers, `positions` a list of them, and a cell
    without text is null.
    """
    names, *rows = table
    sends = []
    for number, (key, *cells) in enumerate(rows):
        data = None
        if any(cells):
            row = {name: _parsed(name, cell) for name, cell in zip(names[1:], cells, strict=True)}
            data = json.dumps({names[0]: key} | row).encode()
        partition = partition_of(key.encode(), partitions)
        sends.append(Send(key.encode(), data, (), EPOCH_MS + number, partition, role=role))
    return sends


def _parsed(name: str, cell: str) -> Any:
    match name:
        case "amount" | "founded":
            return int(cell)
        case "positions":
            return [int(each) for each in cell.split(",") if each]
    return cell or None


def spoiled(role: str, flaw: str, partitions: int) -> Send:
    """Return a record for partition 0 that no contract of JSON rows allows."""
    name = placed("odd", 0, partitions)
    rows: dict[str, dict[str, Any]] = {
        "positions": {"positionId": name, "client": "c", "ticker": None, "amount": 1},
        "tickers": {"ticker": name, "exchange": "LON", "name": "n", "founded": 1900},
        "client-positions": {"client": name, "positions": [1]},
        "client-details": {"client": name, "name": "n", "surname": "s", "email": "e"},
        "visits": {"customerId": name, "visitorId": "v", "action": "click"},
    }
    good = rows[role]
    first, *_, last = good
    key: bytes | None = str(good[first]).encode()
    value = json.dumps(good).encode()
    match flaw:
        case "with a null key":
            key = None
        case "that is no JSON":
            value = value[:-1]
        case "with text for a number" | "with a number for a text":
            value = json.dumps(
                good | {last: "1"} if isinstance(good[last], int) else good | {last: 1}
            ).encode()
        case "without a field":
            value = json.dumps({name: each for name, each in good.items() if name != last}).encode()
    return Send(key, value, (), EPOCH_MS, 0, role=role)


def facts(sends: Sequence[Send]) -> dict[str, int]:
    """Count the facts of a workload that a report states.

    `entries` are changes of the first table, `accounts` its keys.
    """
    counted = [send for send in sends if not send.aborted]
    first = [send for send in counted if send.role in {"positions", "client-positions"}]
    return {
        "records": len(sends),
        "entries": len(first),
        "accounts": len({send.key for send in first}),
        "deletions": sum(send.value is None for send in first),
        "partner_changes": len(counted) - len(first),
        "aborted": len(sends) - len(counted),
    }
