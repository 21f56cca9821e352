"""The programs of the plain design: what each reads, sends and has to know.

The state of the ledger is its output topic: each row carries balance, postings and applied
position. The state of a join is its two input topics below the committed offsets. Both are read
back at a start. Records that wait for a batch are handed over at each commit.
"""

import json
import time
from collections import defaultdict
from typing import Any, Final, NamedTuple, TypedDict

from confluent_kafka import Message
from google.protobuf.message import DecodeError

from upheld.adapter import Failed
from upheld.generators.envelope_pb2 import Envelope, Hop

# As Kafka's client has them.
HeaderValue = str | bytes | None
Headers = dict[str, HeaderValue] | list[tuple[str, HeaderValue]]


class OutputRecord(NamedTuple):
    """A record that is to be sent."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int


# Of a row in JSON, the first one mostly its key -> the types that each may have.
Fields = dict[str, tuple[type, ...]]


class Place(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


# The events of a partition that wait, by customer.
Waiting = dict[str, list[dict[str, str]]]


class Visit(NamedTuple):
    """An event that waits, and where it was read: it stays with that partition."""

    place: Place
    event: dict[str, str]


def poison(message: Message, error: Exception) -> Failed:
    """Return the failure that names a record that cannot be read."""
    return Failed(
        "poison",
        f"{message.topic()}-{message.partition()}@{message.offset()} cannot be read: {error!r}",
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
    )


def envelope_of(message: Message, topic_ids: dict[str, bytes]) -> Envelope:
    """Decode a record's envelope, and append the hop where it was read.

    Raises:
        Failed: The record cannot be read.
    """
    topic = message.topic() or ""
    value = message.value()
    if message.key() is None:
        raise poison(message, ValueError("its key is null"))
    if value is None:
        raise poison(message, ValueError("its value is null"))
    try:
        envelope = Envelope.FromString(value)
    except (DecodeError, ValueError) as error:
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
    """Return the key and the named fields of a row in JSON; None is a tombstone.

    If `keyed`, the key has to be the first of the fields.

    Raises:
        Failed: The record is no such row.
    """
    key = message.key()
    value = message.value()
    if key is None:
        raise poison(message, ValueError("its key is null"))
    if value is None:
        return bytes(key), None
    try:
        said = json.loads(value)
        row = {name: said[name] for name in fields}
    except (ValueError, KeyError, TypeError) as error:
        raise poison(message, error) from None
    if (
        (keyed and bytes(key) != str(next(iter(row.values()))).encode())
        or any(type(row[name]) not in types for name, types in fields.items())
        or not all(
            type(each) is int for name in row if fields[name] == (list,) for each in row[name]
        )
    ):
        raise poison(message, ValueError("another key, or another type of field"))
    return bytes(key), row


class Program:
    """A program: the roles of its topics, and the steps that the loop takes with it.

    A program may leave out the state, and the records that wait.
    """

    reads: tuple[str, ...] = ("input",)
    writes = "output"
    tables: tuple[str, ...] = ()  # the topics whose rows are its state
    is_asked = False  # by key, for the rows of its output
    is_divided = True  # among instances, by partitions; else one of them works for all
    parameters: dict[str, int]
    topic_ids: dict[str, bytes]  # of the topics that are read
    unsaved: dict[str, str] | None = (
        None  # key -> the state that the store, if there is one, does not hold yet
    )

    def stages(self) -> "dict[str, Program]":
        """Return the parts that a store holds apart, in the order to store them."""
        return {self.writes: self}

    def take_up(self, states: dict[str, str]) -> None:
        """Load the state from what a store holds."""
        raise NotImplementedError

    def restore(self, rows: list[Message]) -> None:
        """Load the state from its rows."""

    def load(self, place: Place, waiting: Waiting) -> None:
        """Take up what of a partition waited at its last commit."""

    def take(self, message: Message) -> None:
        """Apply a record."""
        self.apply(message, envelope_of(message, self.topic_ids))

    def apply(self, message: Message, envelope: Envelope) -> None:
        """Apply a record that holds an envelope."""

    def changed(self) -> list[OutputRecord]:
        """Take the records that are to be sent now."""
        return []

    def upstream(self) -> dict[str, list[OutputRecord]]:
        """Take the records that earlier stages have to send, by the role of their topic."""
        return {}

    def waiting(self) -> dict[Place, Waiting]:
        """Return what was read and not yet sent, to keep with the partition's commit."""
        return {}

    def rest(self) -> list[OutputRecord]:
        """Take all that waits, because the design is being closed."""
        return []


class Relay(Program):
    """Passes each record on with a longer chain.

    Key, headers and timestamp stay. It has no state.
    """

    def __init__(self) -> None:
        self.queue: list[OutputRecord] = []

    def apply(self, message: Message, envelope: Envelope) -> None:
        """Queue the record with its longer chain."""
        self.queue.append(
            OutputRecord(
                message.key(),
                envelope.SerializeToString(),
                message.headers() or [],
                message.timestamp()[1],
            )
        )

    def changed(self) -> list[OutputRecord]:
        """Take what is queued."""
        out = self.queue
        self.queue = []
        return out


class Account(NamedTuple):
    """The state of an account."""

    balance_cents: int
    postings: int
    applied: Hop  # the first hop of the last entry applied


NEW_ACCOUNT: Final = Account(0, 0, Hop(offset=-1))


class Ledger(Program):
    """Sums per account, with the first hop of the last entry applied.

    An entry at or below that hop is a duplicate.
    """

    reads = ("entries",)
    writes = "balances"
    of = "account"
    tables: tuple[str, ...] = ("balances",)

    def __init__(self) -> None:
        self.rows: dict[str, Account] = {}
        # account -> last entry applied, timestamp in milliseconds
        self.touched: dict[str, tuple[Envelope, int]] = {}

    def restore(self, rows: list[Message]) -> None:
        """Load every account from its last row.

        The chain in the header holds the topic id too.
        """
        for row in rows:
            value = json.loads(row.value() or "")
            headers = dict(row.headers() or ())
            chain = headers["chain"]
            assert isinstance(chain, bytes)
            applied = Envelope.FromString(chain).chain[0]
            self.rows[value["account"]] = Account(
                value["balance_cents"], value["postings"], applied
            )

    def take_up(self, states: dict[str, str]) -> None:
        """Load every account from its stored row, which holds the topic id too."""
        for account, row in ((account, json.loads(state)) for account, state in states.items()):
            topic_id = bytes.fromhex(row["applied"].pop("topic_id"))
            applied = Hop(**row["applied"], topic_id=topic_id)
            self.rows[account] = Account(row["balance_cents"], row["postings"], applied)

    def is_duplicate(self, first: Hop, applied: Hop) -> bool:
        """Whether the entry whose first hop this is was applied already."""
        same = (first.topic, first.partition, first.topic_id) == (
            applied.topic,
            applied.partition,
            applied.topic_id,
        )
        return same and first.offset <= applied.offset

    def apply(self, message: Message, envelope: Envelope) -> None:
        """Fold the entry's whole collection, under the entry's one offset.

        Each account is changed once.
        """
        first = envelope.chain[0]
        sums: dict[str, list[int]] = {}
        for posting in envelope.postings:
            sums.setdefault(posting.account, []).append(posting.amount_cents)
        for account, amounts in sums.items():
            balance, postings, applied = self.rows.get(account, NEW_ACCOUNT)
            if not self.is_duplicate(first, applied):
                self.rows[account] = Account(balance + sum(amounts), postings + len(amounts), first)
                self.touched[account] = envelope, message.timestamp()[1]

    def changed(self) -> list[OutputRecord]:
        """Take the last state of every account touched."""
        out: list[OutputRecord] = []
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
            headers: Headers = [
                ("id", envelope.id.encode()),
                ("chain", Envelope(chain=envelope.chain).SerializeToString()),
            ]
            out.append(
                OutputRecord(account.encode(), json.dumps(value).encode(), headers, timestamp_ms)
            )
            if self.unsaved is not None:
                value["applied"]["topic_id"] = applied.topic_id.hex()
                self.unsaved[account] = json.dumps(value)
        self.touched = {}
        return out


class Branches(Ledger):
    """Totals of branches, of what is new in a ledger of its own.

    The ledger does not say again what it has stored.
    """

    writes = "totals"
    of = "branch"
    tables = ()

    def __init__(self) -> None:
        super().__init__()
        self.balances = Ledger()

    def stages(self) -> dict[str, Program]:
        """Return the last stage first."""
        return {self.writes: self, self.balances.writes: self.balances}

    def take(self, message: Message) -> None:
        """Give the accounts their postings, and the branch all of them if any is new."""
        envelope = envelope_of(message, self.topic_ids)
        branch = (message.key() or b"").decode()
        self.balances.apply(message, envelope)
        if any(applied is envelope for applied, _ in self.balances.touched.values()):
            for posting in envelope.postings:
                posting.account = branch
            self.apply(message, envelope)

    def upstream(self) -> dict[str, list[OutputRecord]]:
        """Take the last state of every account touched."""
        return {self.balances.writes: self.balances.changed()}


VISIT: Fields = dict.fromkeys(("customerId", "visitorId", "action"), (str,))


class Batcher(Program):
    """Events that wait per customer.

    They go when they fill a batch, when the first of them is too old, or when the design is closed.
    """

    reads = ("visits",)
    writes = "batches"
    now = staticmethod(time.monotonic)  # no jump of the wall clock moves it

    def __init__(self) -> None:
        self.batches: dict[str, list[Visit]] = {}
        # customer -> when its first event came, in seconds by `now`
        self.since: dict[str, float] = {}
        self.full: list[OutputRecord] = []

    def load(self, place: Place, waiting: Waiting) -> None:
        """Let what waited wait from now."""
        for customer, events in waiting.items():
            self.since.setdefault(customer, self.now())
            self.batches.setdefault(customer, []).extend(Visit(place, event) for event in events)

    def waiting(self) -> dict[Place, Waiting]:
        """Every batch that is not full, by the partitions that its events were read from."""
        waiting: defaultdict[Place, Waiting] = defaultdict(dict)
        for customer, visits in self.batches.items():
            for place, event in visits:
                waiting[place].setdefault(customer, []).append(event)
        return waiting

    def take(self, message: Message) -> None:
        """Put an event into its customer's batch; nulls are left out."""
        if message.value() is None:
            return
        _, visit = row_of(message, VISIT)
        assert visit
        customer = visit.pop("customerId")
        place = Place(message.topic() or "", message.partition() or 0)
        self.since.setdefault(customer, self.now())
        self.batches.setdefault(customer, []).append(Visit(place, visit))
        if len(self.batches[customer]) >= self.parameters["threshold"]:
            self.full.append(self.flush(customer))

    def flush(self, customer: str) -> OutputRecord:
        """Take a customer's batch; the next one begins empty."""
        del self.since[customer]
        events = [visit.event for visit in self.batches.pop(customer)]
        value = {"customerId": customer, "events": events}
        return OutputRecord(customer.encode(), json.dumps(value).encode(), [], 0)

    def changed(self) -> list[OutputRecord]:
        """Take the full batches, and those that have waited for the interval."""
        out = self.full
        self.full = []
        due = self.now() - self.parameters["interval_ms"] / 1000
        return out + [
            self.flush(customer) for customer, since in list(self.since.items()) if since <= due
        ]

    def rest(self) -> list[OutputRecord]:
        """Take every batch, full or not."""
        return [self.flush(customer) for customer in list(self.since)]


POSITION: Fields = {
    "positionId": (str,),
    "client": (str,),
    "ticker": (str, type(None)),
    "amount": (int,),
}
HELD: Fields = {"client": (str,), "positions": (list,)}
DETAILS: Fields = dict.fromkeys(("client", "name", "surname", "email"), (str,))
TICKER: Fields = {"ticker": (str,), "exchange": (str,), "name": (str,), "founded": (int,)}


class Entry(NamedTuple):
    """A row of a table that is joined, and where it was read."""

    row: dict[str, object]
    place: str  # role, partition and offset
    timestamp_ms: int


class Join(Program):
    """Two tables, the references from one to the other, and the visible results.

    The last result of each key in a chunk is sent. A row may refer to a partner of any partition,
    so an instance that joins has to read both tables whole.
    """

    writes = "joined"
    is_divided = False
    on: str
    outer = False
    left_fields: Fields
    right_fields: Fields

    def __init__(self) -> None:
        self.left: dict[bytes, Entry] = {}
        self.right: dict[bytes, Entry] = {}
        self.referring: defaultdict[bytes | None, set[bytes]] = defaultdict(set)  # partner -> keys
        self.shown: set[bytes] = set()
        self.touched: dict[bytes, None] = {}  # keys in the order in which they changed

    def restore(self, rows: list[Message]) -> None:
        """Fold both tables, and read from the results which of them are visible.

        Under at_least_once more results may be visible than the committed input says.
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
        """Change a row of either table.

        Every key is touched whose result may change with it.
        """
        role = next(role for role in self.tables if str(message.topic()).endswith(role))
        is_left = role == self.tables[0]
        key, row = row_of(message, self.left_fields if is_left else self.right_fields)
        place = f"{role}-{message.partition()}@{message.offset()}"
        entry = Entry(row, place, message.timestamp()[1]) if row else None
        if is_left:
            self.put(key, entry)
            self.touched[key] = None
        else:
            self.right.pop(key, None)
            if entry:
                self.right[key] = entry
            self.touched |= dict.fromkeys(sorted(self.referring[key]))

    def put(self, key: bytes, entry: Entry | None) -> None:
        """Replace a row of the left table.

        It refers to its new partner, and no longer to the old one.
        """
        if key in self.left:
            self.referring[self.partner(key)].discard(key)
            del self.left[key]
        if entry:
            self.left[key] = entry
            self.referring[self.partner(key)].add(key)

    def partner(self, key: bytes) -> bytes | None:
        """Return the key of the right row that a left one refers to."""
        name = self.left[key].row[self.on]
        return None if name is None else str(name).encode()

    def result(self, key: bytes) -> OutputRecord | None:
        """Return the result of a key as the two tables are now."""
        if key not in self.left:
            return None
        left = self.left[key]
        right = self.right.get(self.partner(key) or b"")
        if right is None and not self.outer:
            return None
        value = {
            "left": left.row,
            "right": right and right.row,
            "from": {"left": left.place, "right": right and right.place},
        }
        return OutputRecord(key, json.dumps(value).encode(), [], left.timestamp_ms)

    def changed(self) -> list[OutputRecord]:
        """Take the result of every key touched.

        A key that has no result any more leaves a tombstone.
        """
        out: list[OutputRecord] = []
        for key in self.touched:
            if row := self.result(key):
                out.append(row)
                self.shown.add(key)
            elif key in self.shown:
                out.append(OutputRecord(key, None, [], 0))
                self.shown.discard(key)
        self.touched = {}
        return out


class Clients(Join):
    """Two tables of one key."""

    reads = ("client-positions", "client-details")
    tables = (*reads, "joined")
    on = "client"
    left_fields = HELD
    right_fields = DETAILS


class Tickers(Join):
    """Positions with the reference as it was at the start."""

    reads: tuple[str, ...] = ("positions",)
    tables: tuple[str, ...] = ("positions", "tickers", "joined")
    on = "ticker"
    left_fields = POSITION
    right_fields = TICKER


class Holdings(Tickers):
    """Positions with the reference as it is now, or without."""

    reads = ("positions", "tickers")
    outer = True


SIGNAL: Fields = {"robot": (str,), "ts_ms": (int,), "points": (int,)}
NAME: Fields = {"name": (str,)}


class Frequency(TypedDict, total=False):
    """A row of `frequency`; it has no numbers before the first signal of its robot."""

    robot: str
    name: str | None
    applied: dict[str, dict[str, int]]  # role -> partition and offset
    points: int
    first_ts_ms: int
    first_points: int
    last_ts_ms: int
    rate_mhz: int


class Pulse(Program):
    """The signals of three topics as one stream, summed once per robot, with its name.

    The sums are read back from the output topic.
    """

    reads = ("motors", "grippers", "controllers", "robots")
    writes = "frequency"
    tables: tuple[str, ...] = ("frequency", "robots")
    is_asked = True

    def __init__(self) -> None:
        self.rows: dict[str, Frequency] = {}
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
        row["applied"][role] = {"partition": message.partition() or 0, "offset": offset}
        if role == "robots":
            row["name"] = said["name"] if said else None
        elif said is None:
            raise poison(message, ValueError("a signal has a value"))
        else:
            count_in(row, said["ts_ms"], said["points"])
        self.touched[key.decode()] = None

    def changed(self) -> list[OutputRecord]:
        """Take the row of every robot that was touched and has had a signal."""
        out = [
            OutputRecord(robot.encode(), json.dumps(self.rows[robot]).encode(), [], 0)
            for robot in self.touched
            if "points" in self.rows[robot]
        ]
        self.touched = {}
        return out


def count_in(row: Frequency, ts_ms: int, points: int) -> None:
    """Add a signal to a row.

    The signal may be older than the first one so far, or of the same moment.
    """
    first_ms = row.get("first_ts_ms", ts_ms)
    last_ms = max(ts_ms, row.get("last_ts_ms", ts_ms))
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


PROGRAMS: Final[dict[str, type[Program]]] = {
    "relay": Relay,
    "ledger": Ledger,
    "branches": Branches,
    "batcher": Batcher,
    "clients": Clients,
    "tickers": Tickers,
    "holdings": Holdings,
    "pulse": Pulse,
}
