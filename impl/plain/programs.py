"""The programs of the plain design: what is read, what comes of it, and what has to be known to go
on.

The ledger's state is its output topic: each row carries balance, postings and applied position.
That of a join is its two input topics below the committed offsets. Both are read back at a start.
What waits for a batch is handed over at each commit.
"""

import json
import time
from collections import defaultdict
from typing import Any

from confluent_kafka import Message
from google.protobuf.message import DecodeError

from upheld.adapter import Failed
from upheld.generators.envelope_pb2 import Envelope, Hop

Row = tuple[Any, bytes | None, Any, int]  # key, value, headers, timestamp in milliseconds
# Of a row in JSON, the first one mostly its key -> the types that each may have.
Fields = dict[str, tuple[type, ...]]


def poison(message: Message, error: Exception) -> Failed:
    """Say which record cannot be read, and stop."""
    return Failed(
        "poison",
        f"{message.topic()}-{message.partition()}@{message.offset()} cannot be read: {error!r}",
    )


def envelope_of(message: Message, topic_ids: dict[str, bytes]) -> Envelope:
    """Decode a record's envelope and append where it was read; stop loudly on what cannot be
    read.
    """
    topic = message.topic() or ""
    try:
        if message.key() is None:
            raise ValueError("its key is null")  # noqa: TRY301
        envelope = Envelope.FromString(message.value())  # type: ignore[arg-type]  # a null is refused below
    except (DecodeError, TypeError, ValueError) as error:
        raise poison(message, error) from None
    hop = Hop(
        topic=topic,
        partition=message.partition(),
        offset=message.offset(),
        topic_id=topic_ids.get(topic),
    )
    envelope.chain.append(hop)
    return envelope


def row_of(
    message: Message, fields: Fields, *, keyed: bool = True
) -> tuple[bytes, dict[str, Any] | None]:
    """The key and the named fields of a row in JSON, None for a tombstone; stop loudly on what is
    none.
    """
    key, value = message.key(), message.value()
    try:
        if key is None:
            raise ValueError("its key is null")  # noqa: TRY301
        said: Any = None if value is None else json.loads(value)
        row = None if value is None else {name: said[name] for name in fields}
        if row and (
            (keyed and bytes(key) != str(next(iter(row.values()))).encode())
            or any(type(row[name]) not in types for name, types in fields.items())
            or not all(
                type(each) is int for name in row if fields[name] == (list,) for each in row[name]
            )
        ):
            raise ValueError("another key, or another type of field")  # noqa: TRY301
    except (ValueError, KeyError, TypeError) as error:
        raise poison(message, error) from None
    return bytes(key), row


class Program:
    """What is read, what is sent, and what a program may leave out: a state, and something that
    waits.
    """

    reads: tuple[str, ...] = ("input",)
    writes = "output"
    tables: tuple[str, ...] = ()  # the topics whose rows are its state
    is_asked = False  # by key, for the rows of its output
    parameters: dict[str, Any]
    topic_ids: dict[str, bytes]  # of the topics that are read
    unsaved: dict[str, str] | None = (
        None  # key -> the state that the store, if there is one, does not hold yet
    )

    def stages(self) -> "dict[str, Program]":
        """What a store holds apart, in the order in which it has to be stored."""
        return {self.writes: self}

    def take_up(self, states: dict[str, str]) -> None:
        """Load the state from what a store holds."""
        raise NotImplementedError

    def restore(self, rows: list[Message]) -> None:
        """Load the state from its rows."""

    def load(self, waiting: dict[str, Any]) -> None:
        """Take up what waited at the last commit."""

    def take(self, message: Message) -> None:
        """Apply a record, and the envelope that it holds."""
        self.apply(message, envelope_of(message, self.topic_ids))

    def apply(self, message: Message, envelope: Envelope) -> None:
        """Apply an envelope."""

    def changed(self) -> list[Row]:
        """Take what is to be sent now."""
        return []

    def upstream(self) -> dict[str, list[Row]]:
        """Take what stages before the last one have to send, by the role of its topic."""
        return {}

    def waiting(self) -> dict[str, Any]:
        """What was read and not yet sent, to be kept with the commit."""
        return {}

    def rest(self) -> list[Row]:
        """Take what waits, because all is closed."""
        return []


class Relay(Program):
    """Stateless: the same key, headers and timestamp, and the hop appended to the chain."""

    def __init__(self) -> None:
        self.queue: list[Row] = []

    def apply(self, message: Message, envelope: Envelope) -> None:
        """Queue the record with its longer chain."""
        self.queue.append(
            (
                message.key(),
                envelope.SerializeToString(),
                message.headers() or [],
                message.timestamp()[1],
            )
        )

    def changed(self) -> list[Row]:
        """Take what is queued."""
        out, self.queue = self.queue, []
        return out


class Ledger(Program):
    """Sums per account, with the first hop of the last entry applied: at or below it, an entry is a
    duplicate.
    """

    reads, writes, of = ("entries",), "balances", "account"
    tables: tuple[str, ...] = ("balances",)

    def __init__(self) -> None:
        # account -> balance in cents, postings, applied
        self.rows: dict[str, tuple[int, int, Hop]] = {}
        # account -> last entry applied, timestamp in milliseconds
        self.touched: dict[str, tuple[Envelope, int]] = {}

    def restore(self, rows: list[Message]) -> None:
        """Load every account from its last row; the chain in the header holds the topic id too."""
        for row in rows:
            value, headers = json.loads(row.value() or ""), dict(row.headers() or ())
            chain = Envelope.FromString(headers["chain"]).chain  # type: ignore[arg-type]
            self.rows[value["account"]] = value["balance_cents"], value["postings"], chain[0]

    def take_up(self, states: dict[str, str]) -> None:
        """Load every account from its stored row, which holds the topic id too."""
        for account, row in ((account, json.loads(state)) for account, state in states.items()):
            topic_id = bytes.fromhex(row["applied"].pop("topic_id"))
            self.rows[account] = (
                row["balance_cents"],
                row["postings"],
                Hop(**row["applied"], topic_id=topic_id),
            )

    def is_duplicate(self, first: Hop, applied: Hop) -> bool:
        """Whether the entry whose first hop this is was applied already."""
        same = (first.topic, first.partition, first.topic_id) == (
            applied.topic,
            applied.partition,
            applied.topic_id,
        )
        return same and first.offset <= applied.offset

    def apply(self, message: Message, envelope: Envelope) -> None:
        """Fold the entry's whole collection: every account once, under the entry's one offset."""
        first = envelope.chain[0]
        sums: dict[str, list[int]] = {}
        for posting in envelope.postings:
            sums.setdefault(posting.account, []).append(posting.amount_cents)
        for account, amounts in sums.items():
            balance, postings, applied = self.rows.get(account, (0, 0, Hop(offset=-1)))
            if not self.is_duplicate(first, applied):
                self.rows[account] = balance + sum(amounts), postings + len(amounts), first
                self.touched[account] = envelope, message.timestamp()[1]

    def changed(self) -> list[Row]:
        """Take the last state of every account touched."""
        out: list[Row] = []
        for account, (envelope, timestamp_ms) in self.touched.items():
            balance, postings, applied = self.rows[account]
            value: dict[str, Any] = {
                self.of: account,
                "balance_cents": balance,
                "postings": postings,
                "applied": {
                    "topic": applied.topic,
                    "partition": applied.partition,
                    "offset": applied.offset,
                },
            }
            headers = [
                ("id", envelope.id.encode()),
                ("chain", Envelope(chain=envelope.chain).SerializeToString()),
            ]
            out.append((account.encode(), json.dumps(value).encode(), headers, timestamp_ms))
            if self.unsaved is not None:
                value["applied"]["topic_id"] = applied.topic_id.hex()
                self.unsaved[account] = json.dumps(value)
        self.touched = {}
        return out


class Branches(Ledger):
    """Totals of branches, of what is new in a ledger of its own; for what that has stored it will
    not say again.
    """

    writes, of = "totals", "branch"
    tables = ()

    def __init__(self) -> None:
        super().__init__()
        self.balances = Ledger()

    def stages(self) -> dict[str, Program]:
        """The last stage first."""
        return {self.writes: self, self.balances.writes: self.balances}

    def take(self, message: Message) -> None:
        """Give the accounts what is theirs, and the branch all of it, if any was new."""
        envelope, branch = envelope_of(message, self.topic_ids), (message.key() or b"").decode()
        self.balances.apply(message, envelope)
        if any(applied is envelope for applied, _ in self.balances.touched.values()):
            for posting in envelope.postings:
                posting.account = branch
            self.apply(message, envelope)

    def upstream(self) -> dict[str, list[Row]]:
        """Take the last state of every account touched."""
        return {self.balances.writes: self.balances.changed()}


VISIT: Fields = dict.fromkeys(("customerId", "visitorId", "action"), (str,))


class Batcher(Program):
    """Events wait per customer until they fill a batch, their first one is too old, or all is
    closed.
    """

    reads, writes = ("visits",), "batches"
    now = staticmethod(time.monotonic)  # a clock that nobody sets

    def __init__(self) -> None:
        self.batches: dict[str, list[dict[str, str]]] = {}
        # customer -> when its first event came, by a clock that nobody sets
        self.since: dict[str, float] = {}
        self.full: list[Row] = []

    def load(self, waiting: dict[str, Any]) -> None:
        """Let what waited wait from now."""
        self.batches |= waiting
        self.since |= dict.fromkeys(waiting, self.now())

    def waiting(self) -> dict[str, Any]:
        """Every batch that is not full."""
        return self.batches

    def take(self, message: Message) -> None:
        """Put an event into its customer's batch; nulls are left out."""
        if message.value() is None:
            return
        _, visit = row_of(message, VISIT)
        assert visit
        customer = visit.pop("customerId")
        self.since.setdefault(customer, self.now())
        self.batches.setdefault(customer, []).append(visit)
        if len(self.batches[customer]) >= self.parameters["threshold"]:
            self.full.append(self.flush(customer))

    def flush(self, customer: str) -> Row:
        """Take a customer's batch; the next one begins empty."""
        del self.since[customer]
        value = {"customerId": customer, "events": self.batches.pop(customer)}
        return customer.encode(), json.dumps(value).encode(), [], 0

    def changed(self) -> list[Row]:
        """Take the full batches, and those that have waited for the interval."""
        out, self.full = self.full, []
        due = self.now() - self.parameters["interval_ms"] / 1000
        return out + [
            self.flush(customer) for customer, since in list(self.since.items()) if since <= due
        ]

    def rest(self) -> list[Row]:
        """Take every batch, full or not."""
        return [self.flush(customer) for customer in list(self.since)]


POSITION: Fields = {
    "positionId": (str,),
    "client": (str,),
    "ticker": (str, type(None)),
    "amount": (int,),
}
TICKER: Fields = {"ticker": (str,), "exchange": (str,), "name": (str,), "founded": (int,)}


class Join(Program):
    """Both tables, who refers to whom, and which keys have a visible result; the last result of a
    chunk is sent.
    """

    writes = "joined"
    on: str
    outer = False
    left_fields: Fields
    right_fields: Fields

    def __init__(self) -> None:
        # key -> row, place, timestamp in milliseconds
        self.left: dict[bytes, tuple[dict[str, Any], str, int]] = {}
        self.right: dict[bytes, tuple[dict[str, Any], str, int]] = {}
        self.referring: defaultdict[bytes | None, set[bytes]] = defaultdict(set)  # partner -> keys
        self.shown: set[bytes] = set()
        self.touched: dict[bytes, None] = {}  # keys in the order in which they changed

    def restore(self, rows: list[Message]) -> None:
        """Fold both tables; what is visible the results say, for at_least_once may have shown more
        than was committed.
        """
        for row in rows:
            if str(row.topic()).endswith(self.writes):
                (self.shown.add if row.value() is not None else self.shown.discard)(
                    bytes(row.key() or b"")
                )
            else:
                self.take(row)
        self.touched = {}

    def take(self, message: Message) -> None:
        """Change a row of either table, and touch every key whose result may change with it."""
        role = next(role for role in self.tables if str(message.topic()).endswith(role))
        is_left = role == self.tables[0]
        key, row = row_of(message, self.left_fields if is_left else self.right_fields)
        entry = (
            (row, f"{role}-{message.partition()}@{message.offset()}", message.timestamp()[1])
            if row
            else None
        )
        if is_left:
            self.put(key, entry)
            self.touched[key] = None
        else:
            self.right.pop(key, None)
            if entry:
                self.right[key] = entry
            self.touched |= dict.fromkeys(sorted(self.referring[key]))

    def put(self, key: bytes, entry: tuple[dict[str, Any], str, int] | None) -> None:
        """Replace a row of the left table; it refers to its new partner and no longer to the old
        one.
        """
        if key in self.left:
            self.referring[self.partner(key)].discard(key)
            del self.left[key]
        if entry:
            self.left[key] = entry
            self.referring[self.partner(key)].add(key)

    def partner(self, key: bytes) -> bytes | None:
        """The key of the right row that a left one refers to."""
        name = self.left[key][0][self.on]
        return None if name is None else str(name).encode()

    def result(self, key: bytes) -> Row | None:
        """What the two tables say of a key now."""
        if key not in self.left:
            return None
        (left, place, timestamp_ms), partner = (
            self.left[key],
            self.right.get(self.partner(key) or b""),
        )
        if partner is None and not self.outer:
            return None
        right, other = partner[:2] if partner else (None, None)
        value = {"left": left, "right": right, "from": {"left": place, "right": other}}
        return key, json.dumps(value).encode(), [], timestamp_ms

    def changed(self) -> list[Row]:
        """Take the result of every key touched; one that has none any more leaves a tombstone."""
        out: list[Row] = []
        for key in self.touched:
            if row := self.result(key):
                out.append(row)
                self.shown.add(key)
            elif key in self.shown:
                out.append((key, None, [], 0))
                self.shown.discard(key)
        self.touched = {}
        return out


class Clients(Join):
    """Two tables of one key."""

    reads = ("client-positions", "client-details")
    tables = (*reads, "joined")
    on = "client"
    left_fields: Fields = {"client": (str,), "positions": (list,)}  # noqa: RUF012
    right_fields: Fields = dict.fromkeys(("client", "name", "surname", "email"), (str,))


class Tickers(Join):
    """Positions with the reference as it was at the start."""

    reads: tuple[str, ...] = ("positions",)
    tables: tuple[str, ...] = ("positions", "tickers", "joined")
    on = "ticker"
    left_fields, right_fields = POSITION, TICKER


class Holdings(Tickers):
    """Positions with the reference as it is now, or without."""

    reads = ("positions", "tickers")
    outer = True


SIGNAL: Fields = {"robot": (str,), "ts_ms": (int,), "points": (int,)}
NAME: Fields = {"name": (str,)}


class Pulse(Program):
    """The signals of three topics as one stream, summed once per robot, with its name; the sums are
    read back from the table.
    """

    reads, writes = ("motors", "grippers", "controllers", "robots"), "frequency"
    tables: tuple[str, ...] = ("frequency", "robots")
    is_asked = True

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        self.touched: dict[str, None] = {}

    def restore(self, rows: list[Message]) -> None:
        """Load the rows, and the names of robots that have none yet."""
        for row in rows:
            if str(row.topic()).endswith(self.writes):
                self.rows[bytes(row.key() or b"").decode()] = json.loads(row.value() or "")
            else:
                self.take(row)
        self.touched = {}

    def take(self, message: Message) -> None:
        """Count a signal in, or take a name up, unless the row holds it already."""
        role = str(message.topic()).rsplit("-", 1)[1]
        key, said = (
            row_of(message, NAME, keyed=False) if role == "robots" else row_of(message, SIGNAL)
        )
        row = self.rows.setdefault(
            key.decode(), {"robot": key.decode(), "name": None, "applied": {}}
        )
        offset = message.offset() or 0
        if offset <= row["applied"].get(role, {"offset": -1})["offset"]:
            return
        row["applied"][role] = {"partition": message.partition(), "offset": offset}
        if role == "robots":
            row["name"] = said and said["name"]
        elif said is None:
            raise poison(message, ValueError("a signal has a value"))
        else:
            count_in(row, said["ts_ms"], said["points"])
        self.touched[key.decode()] = None

    def changed(self) -> list[Row]:
        """Take the row of every robot that was touched and has had a signal."""
        out: list[Row] = [
            (robot.encode(), json.dumps(self.rows[robot]).encode(), [], 0)
            for robot in self.touched
            if "points" in self.rows[robot]
        ]
        self.touched = {}
        return out


def count_in(row: dict[str, Any], ts_ms: int, points: int) -> None:
    """Add a signal to a row; it may be older than the first one so far, or of the same moment."""
    first_ms, last_ms = row.get("first_ts_ms", ts_ms), max(ts_ms, row.get("last_ts_ms", ts_ms))
    if ts_ms <= first_ms:
        row["first_points"] = points + (row.get("first_points", 0) if ts_ms == first_ms else 0)
        first_ms = ts_ms
    total = row.get("points", 0) + points
    rate_mhz = (
        (total - row["first_points"]) * 1_000_000 // (last_ms - first_ms)
        if last_ms > first_ms
        else 0
    )
    row |= {"points": total, "first_ts_ms": first_ms, "last_ts_ms": last_ms, "rate_mhz": rate_mhz}
