"""The smallest correct design: one Python process on confluent-kafka, read as an example of what suffices.

Every program is one loop: read a chunk, apply it, send what is due, and once per commit interval commit. Under
exactly_once outputs and input offsets are one Kafka transaction, fenced by a stable transactional id and by the group's
generation; under at_least_once every output is acknowledged before the offsets are committed. The ledger's state is
its output topic: each row carries balance, postings and applied position, so a start reads the rows back. What waits for a
batch is written to the shared disk before each commit, under a name that the commit holds as the offsets' metadata.
"""

import json
import threading
import time
import uuid
from pathlib import Path
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from google.protobuf.message import DecodeError

from streamgate.adapter import Design, Failed, serve
from streamgate.generators.envelope_pb2 import Envelope, Hop

Row = tuple[Any, bytes, Any, int]  # key, value, headers, timestamp in milliseconds
CHUNK = 500  # records applied together; what they change is sent once
FENCED = {
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.FENCED_INSTANCE_ID,
}


def poison(message: Message, error: Exception) -> Failed:
    """Say which record cannot be read, and stop."""
    return Failed("poison", f"{message.topic()}-{message.partition()}@{message.offset()} cannot be read: {error!r}")


def envelope_of(message: Message) -> Envelope:
    """Decode a record's envelope and append where it was read; stop loudly on what cannot be read."""
    try:
        envelope = Envelope.FromString(message.value())  # type: ignore[arg-type]  # a null is refused below
    except (DecodeError, TypeError) as error:
        raise poison(message, error) from None
    envelope.chain.append(Hop(topic=message.topic(), partition=message.partition(), offset=message.offset()))
    return envelope


class Program:
    """What is read, what is sent, and what a program may leave out: a state, and something that waits."""

    reads, writes = "input", "output"
    keeps_rows = False  # whether its state is its output topic
    parameters: dict[str, Any]

    def restore(self, rows: list[Message]) -> None:
        """Load the state from every committed row of the output topic."""

    def load(self, waiting: dict[str, Any]) -> None:
        """Take up what waited at the last commit."""

    def take(self, message: Message) -> None:
        """Apply a record, and the envelope that it holds."""
        self.apply(message, envelope_of(message))

    def apply(self, message: Message, envelope: Envelope) -> None:
        """Apply an envelope."""

    def changed(self) -> list[Row]:
        """Take what is to be sent now."""
        return []

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
            (message.key(), envelope.SerializeToString(), message.headers() or [], message.timestamp()[1])
        )

    def changed(self) -> list[Row]:
        """Take what is queued."""
        out, self.queue = self.queue, []
        return out


class Ledger(Program):
    """Sums per account, with the first hop of the last entry applied: at or below it, an entry is a duplicate."""

    reads, writes = "entries", "balances"
    keeps_rows = True

    def __init__(self) -> None:
        self.rows: dict[str, tuple[int, int, Hop]] = {}  # account -> balance in cents, postings, applied
        self.touched: dict[str, tuple[Envelope, int]] = {}  # account -> last entry applied, timestamp in milliseconds

    def restore(self, rows: list[Message]) -> None:
        """Load every account from its last row; the chain in the header holds the topic id too."""
        for row in rows:
            value, headers = json.loads(row.value() or ""), dict(row.headers() or ())
            chain = Envelope.FromString(headers["chain"]).chain  # type: ignore[arg-type]
            self.rows[value["account"]] = value["balance_cents"], value["postings"], chain[0]

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
        out = []
        for account, (envelope, timestamp_ms) in self.touched.items():
            balance, postings, applied = self.rows[account]
            value = {
                "account": account,
                "balance_cents": balance,
                "postings": postings,
                "applied": {"topic": applied.topic, "partition": applied.partition, "offset": applied.offset},
            }
            headers = [
                ("id", envelope.id.encode()),
                ("chain", Envelope(chain=envelope.chain).SerializeToString()),
            ]
            out.append((account.encode(), json.dumps(value).encode(), headers, timestamp_ms))
        self.touched = {}
        return out


class Batcher(Program):
    """Events wait per customer until they fill a batch, their first one is too old, or all is closed."""

    reads, writes = "visits", "batches"

    def __init__(self) -> None:
        self.batches: dict[str, list[dict[str, str]]] = {}
        self.since: dict[str, float] = {}  # customer -> when its first event came, by a clock that nobody sets
        self.full: list[Row] = []

    def load(self, waiting: dict[str, Any]) -> None:
        """Let what waited wait from now."""
        self.batches |= waiting
        self.since |= dict.fromkeys(waiting, time.monotonic())

    def waiting(self) -> dict[str, Any]:
        """Every batch that is not full."""
        return self.batches

    def take(self, message: Message) -> None:
        """Put an event into its customer's batch; nulls are left out."""
        if message.value() is None:
            return
        try:
            visit = json.loads(message.value())  # type: ignore[arg-type]  # no null
            customer, event = visit["customerId"], {name: visit[name] for name in ("visitorId", "action")}
        except (ValueError, KeyError, TypeError) as error:
            raise poison(message, error) from None
        self.since.setdefault(customer, time.monotonic())
        self.batches.setdefault(customer, []).append(event)
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
        due = time.monotonic() - self.parameters["interval_ms"] / 1000
        return out + [self.flush(customer) for customer, since in list(self.since.items()) if since <= due]

    def rest(self) -> list[Row]:
        """Take every batch, full or not."""
        return [self.flush(customer) for customer in list(self.since)]


class Plain(Design):
    """The loop that the programs share."""

    hello = {  # noqa: RUF012  (a constant of the protocol, never changed)
        "name": "plain",
        "version": "1",
        "language": "python",
        "programs": ["relay", "ledger", "batcher"],
        "modes": ["at_least_once", "exactly_once"],
        "capabilities": ["reusable"],
    }
    programs: dict[str, type[Program]] = {"relay": Relay, "ledger": Ledger, "batcher": Batcher}  # noqa: RUF012
    isolation = "read_committed"

    def transactional_id(self) -> str:
        """Stable over restarts: a successor's init_transactions fences whoever held it."""
        return f"{self.start['application_id']}-{self.start['topics'][self.program.reads]}"

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        """Fence and settle the predecessor, join the group, load the state; ready once partitions are held."""
        self.start, self.program = start, self.programs[start["program"]]()
        self.exactly_once = start["mode"] == "exactly_once"
        self.client = {"bootstrap.servers": start["bootstrap"], "retry.backoff.ms": 20, **start["client"]}
        self.output = start["topics"][self.program.writes]
        self.group, self.folder = f"{start['application_id']}-group", Path(start["durable_dir"])
        self.refused: KafkaError | None = None
        settings = {"partitioner": "murmur2_random", "enable.idempotence": True, "linger.ms": 5}
        if self.exactly_once:
            settings["transactional.id"] = self.transactional_id()
            settings["transaction.timeout.ms"] = start["transaction_timeout_ms"]
        self.producer = Producer(self.client | settings)
        if self.exactly_once:
            self.producer.init_transactions(30)
        self.consumer = Consumer(
            self.client
            | {
                "group.id": self.group,
                "group.instance.id": start["instance"],  # a restart takes its own place at once, and fences the dead
                "isolation.level": self.isolation,
                "enable.auto.commit": False,
                "auto.offset.reset": start["offset_reset"],
                "session.timeout.ms": start["session_timeout_ms"],
                "heartbeat.interval.ms": start["session_timeout_ms"] // 4,
                "fetch.wait.max.ms": 50,
            }
        )
        self.in_transaction, self.dirty, self.assigned = False, False, False
        self.consumer.subscribe(
            [start["topics"][self.program.reads]], on_assign=self.on_assign, on_revoke=self.on_revoke
        )
        deadline = time.monotonic() + 50
        while not self.assigned:
            if time.monotonic() > deadline:
                raise Failed("conflict", f"group {self.group} gave no partitions within 50 s")
            self.pending = self.consumer.consume(CHUNK, 0.05)
        return {"consumer_group": self.group, "transactional_id_prefix": self.transactional_id()}

    def on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """State before the first record: read it back, then play from the committed offsets."""
        self.program = self.programs[self.start["program"]]()
        self.program.parameters = self.start["parameters"]
        if self.program.keeps_rows:
            self.program.restore(self.table())
        self.committed = consumer.committed(partitions, 30)
        kept = {p.metadata for p in self.committed if p.metadata}
        for name in kept:
            self.program.load(json.loads((self.folder / name).read_text()))
        self.kept, self.assigned = next(iter(kept), ""), True

    def on_revoke(self, _: Consumer, __: list[TopicPartition]) -> None:
        """What was not committed belongs to the next owner: take it back where that is possible."""
        if self.in_transaction:
            self.producer.abort_transaction(10)
        self.in_transaction = self.dirty = False

    def table(self) -> list[Message]:
        """Every committed row of the output topic up to its end now."""
        reader = Consumer(
            self.client
            | {
                "group.id": self.group + "-table",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
            }
            | {"enable.auto.commit": False, "auto.offset.reset": "earliest", "fetch.wait.max.ms": 10}
        )
        partitions = reader.list_topics(self.output, 10).topics[self.output].partitions
        reader.assign([TopicPartition(self.output, p, OFFSET_BEGINNING) for p in partitions])
        rows, open_partitions = [], set(partitions)
        while open_partitions:
            for message in reader.consume(CHUNK, 0.01):
                error = message.error()
                if error is None:
                    rows.append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    open_partitions.discard(message.partition())
                else:
                    raise KafkaException(error)
        reader.close()
        return rows

    def run(self, stopping: threading.Event) -> None:
        """Read, apply, send, and commit once per interval; a graceful stop commits what was applied."""
        interval_s = int(self.start["parameters"].get("commit_interval_ms", 100)) / 1000
        due = time.monotonic() + interval_s
        try:
            while not stopping.is_set():
                self.process(
                    self.pending or self.consumer.consume(CHUNK, max(0.005, min(0.05, due - time.monotonic())))
                )
                self.pending = []
                if time.monotonic() >= due:
                    self.commit()
                    due = time.monotonic() + interval_s
            self.send(self.program.rest())
            self.commit()
            self.consumer.close()
        except KafkaException as error:
            self.give_up(error.args[0])

    def process(self, messages: list[Message]) -> None:
        """Apply a chunk, and send what is due."""
        for message in messages:
            if message.error():
                raise KafkaException(message.error())
            self.program.take(message)
            self.begin()
        self.send(self.program.changed())

    def begin(self) -> None:
        """Something changes: open a transaction where the mode asks for one."""
        if self.exactly_once and not self.in_transaction:
            self.producer.begin_transaction()
            self.in_transaction = True
        self.dirty = True

    def send(self, rows: list[Row]) -> None:
        """Hand rows to the producer; a refusal shows at the next commit."""
        if rows:
            self.begin()
        for key, value, headers, timestamp_ms in rows:
            while True:
                try:
                    self.producer.produce(
                        self.output,
                        value,
                        key,
                        headers=headers,
                        timestamp=timestamp_ms,
                        on_delivery=self.delivered,
                    )
                    break
                except BufferError:  # the queue is full: let deliveries make room
                    self.producer.poll(0.1)
        self.producer.poll(0)

    def delivered(self, error: KafkaError | None, _: Message) -> None:
        """Remember the first refusal."""
        self.refused = self.refused or error

    def commit(self) -> None:
        """Outputs first, then the offsets; in one transaction under exactly_once."""
        if not self.dirty:
            return
        if self.producer.flush(30) and not self.refused:
            self.refused = KafkaError(KafkaError._TIMED_OUT, "outputs were not acknowledged within 30 s")
        if self.refused:
            raise KafkaException(self.refused)
        before, self.kept = self.kept, self.keep()
        if self.exactly_once:
            self.producer.send_offsets_to_transaction(self.positions(), self.membership(), 30)
            self.producer.commit_transaction(30)
        else:
            self.consumer.commit(offsets=self.positions(), asynchronous=False)
        self.in_transaction = self.dirty = False
        if before:
            (self.folder / before).unlink(missing_ok=True)

    def keep(self) -> str:
        """Write down what waits, under a name that no other commit has."""
        if not (waiting := self.program.waiting()):
            return ""
        name = f"waiting-{uuid.uuid4().hex}.json"
        (self.folder / name).write_text(json.dumps(waiting))
        return name

    def positions(self) -> list[TopicPartition]:
        """Where each partition goes on: the offset after the last record applied, or the one that it was started from."""
        positions = {(p.topic, p.partition): p.offset for p in self.committed if p.offset >= 0}
        positions |= {(p.topic, p.partition): p.offset for p in self.consumer.position(self.committed) if p.offset >= 0}
        return [TopicPartition(*place, offset, self.kept) for place, offset in positions.items()]

    def membership(self) -> object:
        """Who sends offsets into a transaction: the broker refuses a member that has lost its place in the group."""
        return self.consumer.consumer_group_metadata()

    def give_up(self, error: KafkaError) -> None:
        """Stop loudly, leaving no open transaction."""
        fenced = error.code() in FENCED
        if self.in_transaction and not fenced:
            self.producer.abort_transaction(10)
        raise Failed("fenced" if fenced else "storage", f"{error.name()}: {error.str()}")


if __name__ == "__main__":
    serve(Plain())
