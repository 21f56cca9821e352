"""The smallest correct design: one Python process on confluent-kafka, read as an example of what
suffices.

Every program is one loop: read a chunk, apply it, send what is due, and once per commit interval
commit. Under exactly_once outputs and input offsets are one Kafka transaction, fenced by an
instance's stable transactional id and by the group's generation; under at_least_once every output
is acknowledged before the offsets are committed. State is read back from Kafka whenever partitions
are assigned, at a start or later. What waits for a batch is written to the shared disk before each
commit, under a name that the commit holds as the offsets' metadata.
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
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from upheld.adapter import Design, Failed
from upheld.impl.common.clients import ONE_IN_FLIGHT, forward_errors, with_timeout
from upheld.impl.common.effects import Effects
from upheld.impl.common.lag import lag
from upheld.impl.common.stores import open_store
from upheld.impl.common.table import Table
from upheld.impl.common.topics import topic_ids
from upheld.impl.plain.programs import (
    Batcher,
    Branches,
    Clients,
    Holdings,
    Ledger,
    Program,
    Pulse,
    Relay,
    Row,
    Tickers,
)

CHUNK = 500  # records applied together; what they change is sent once
LEAST = dict.fromkeys(
    ("commit_interval_ms", "persistence_interval_ms", "threshold", "interval_ms"), 1
)
LEAST["delete_retention_ms"] = 0
FENCED = {
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.FENCED_INSTANCE_ID,
}


class Plain(Design):
    """The loop that the programs share."""

    hello = {  # noqa: RUF012  (a constant of the protocol, never changed)
        "name": "plain",
        "version": "1",
        "language": "python",
        "programs": [
            "relay",
            "ledger",
            "branches",
            "batcher",
            "clients",
            "tickers",
            "holdings",
            "pulse",
        ],
        "modes": ["at_least_once", "exactly_once"],
        "capabilities": [
            *(
                "reusable",
                "measure",
                "lag",
                "query",
                "scale",
                "standby",
                "sqlite",
                "redis",
                "effects",
                "dead-letters",
            ),
        ],
    }
    programs: dict[str, type[Program]] = {  # noqa: RUF012
        "relay": Relay,
        "ledger": Ledger,
        "branches": Branches,
        "batcher": Batcher,
        "clients": Clients,
        "tickers": Tickers,
        "holdings": Holdings,
        "pulse": Pulse,
    }
    isolation = "read_committed"

    def transactional_id(self) -> str:
        """An instance's own, and stable over restarts: its successor's init_transactions fences
        whoever held it.
        """
        return f"{self.start['application_id']}-{self.start['topics'][self.program.reads[0]]}-{self.start['instance']}"

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        """Fence and settle the predecessor, join the group, load the state; ready once partitions
        are held.
        """
        # All that it has to know then is the table, and where the first one ended.
        if start.get("standing_by"):
            self.start = start
            return {"type": "standing_by"}
        for name, least in LEAST.items():
            if (value := start["parameters"].get(name, least)) < least:
                raise Failed("conflict", f"{name} is {value}, and must be {least} or more")
        self.start, self.program = start, self.programs[start["program"]]()
        self.exactly_once = start["mode"] == "exactly_once"
        kind = start["parameters"].get("store")
        if (
            (self.exactly_once or not isinstance(self.program, Ledger))
            if kind
            else isinstance(self.program, Branches)
        ):
            return {
                "type": "unsupported",
                "reason": "a store keeps ledger and branches, the latter always, at_least_once",
            }
        self.store = open_store(start)
        again = {"retry.backoff.ms": 20, "reconnect.backoff.max.ms": 1_000}
        self.client = {"bootstrap.servers": start["bootstrap"], **again, **start["client"]}
        self.output = start["topics"][self.program.writes]
        self.group, self.folder = f"{start['application_id']}-group", Path(start["durable_dir"])
        self.rows = (
            Table(self.client, f"{self.group}-queries", self.output)
            if self.program.is_asked
            else None
        )
        self.refused: KafkaError | None = None
        self.effects = Effects(start)
        settings = {
            "partitioner": "murmur2_random",
            "enable.idempotence": True,
            "linger.ms": 5,
            **ONE_IN_FLIGHT,
        }
        if self.exactly_once:
            settings["transactional.id"] = self.transactional_id()
            settings["transaction.timeout.ms"] = start["transaction_timeout_ms"]
        else:
            settings["socket.timeout.ms"] = (
                10_000  # a silent connection is given up well before a flush is
            )
        self.producer = Producer(self.client | settings)
        if self.exactly_once:
            # Once connected, it finds its coordinator at once.
            self.producer.list_topics(self.output, 10)
            self.producer.init_transactions(30)
        self.consumer = Consumer(
            self.client
            | {
                "group.id": self.group,
                "group.instance.id": start[
                    "instance"
                ],  # a restart takes its own place at once, and fences the dead
                "isolation.level": self.isolation,
                "enable.auto.commit": False,
                "auto.offset.reset": start["offset_reset"],
                "session.timeout.ms": start["session_timeout_ms"],
                "heartbeat.interval.ms": start["session_timeout_ms"] // 4,
                "fetch.wait.max.ms": 50,
                "topic.metadata.refresh.interval.ms": 1000,  # new partitions are heard of
                # The only sign of markers at the end, which no reader is given.
                "enable.partition.eof": True,
            }
        )
        # A second one for the lag: the first hears nobody else while it is polled.
        self.monitor = Consumer(self.client | {"group.id": self.group})
        self.in_transaction, self.dirty, self.assigned = False, False, False
        called = {
            name: forward_errors(getattr(self, name), self.give_up)
            for name in ("on_assign", "on_revoke")
        }
        self.consumer.subscribe([start["topics"][role] for role in self.program.reads], **called)
        deadline = time.monotonic() + 50
        while not self.assigned:
            if time.monotonic() > deadline:
                raise Failed("conflict", f"group {self.group} gave no partitions within 50 s")
            self.pending = self.consumer.consume(CHUNK, 0.05)
        return {"consumer_group": self.group, "transactional_id_prefix": self.transactional_id()}

    def activate(self, after: dict[str, int]) -> dict[str, Any]:
        """Begin where another cluster ended."""
        group, start = f"{self.start['application_id']}-group", self.start | {"standing_by": False}
        places = [(*place.rpartition("-")[::2], offset) for place, offset in after.items()]
        client = {"bootstrap.servers": start["bootstrap"], "group.id": group, **start["client"]}
        Consumer(client).commit(
            offsets=[TopicPartition(t, int(p), o) for t, p, o in places], asynchronous=False
        )
        return self.open(start)

    def deactivate(self) -> dict[str, Any]:
        """Another cluster begins where this one ended: what it read is committed."""
        return {"type": "deactivated", "emitted_through": self.through}

    def on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """State before the first record: read it back, then play from the committed offsets."""
        self.program = self.programs[self.start["program"]]()
        self.program.parameters, self.program.topic_ids = self.start["parameters"], self.topic_ids()
        self.committed = consumer.committed(partitions, 30)
        self.settled = {(p.topic, p.partition): p.offset for p in self.committed}
        self.look_for_a_gap(consumer)
        if self.store:
            for stage, part in self.program.stages().items():
                part.take_up(self.store.rows(stage))
                part.unsaved = {}
        else:
            self.program.restore([row for role in self.program.tables for row in self.table(role)])
        kept = {p.metadata for p in self.committed if p.metadata}
        for name in kept:
            self.program.load(self.kept_as(name))
        self.kept, self.assigned = next(iter(kept), ""), True

    def topic_ids(self) -> dict[str, bytes]:
        """Of the topics that are read: what was applied of one that is gone says nothing of one
        that has its name.
        """
        return topic_ids(self.client, [self.start["topics"][role] for role in self.program.reads])

    def kept_as(self, name: str) -> dict[str, Any]:
        """What waited at the commit of that name."""
        try:
            waiting: dict[str, Any] = json.loads((self.folder / name).read_text())
        except (OSError, ValueError) as error:
            raise Failed(
                "storage", f"{name} cannot be read, and a commit names it: {error}"
            ) from None
        return waiting

    def look_for_a_gap(self, consumer: Consumer) -> None:
        """Stop where what is committed has been deleted: the client would go on behind the gap, as
        at a first start.
        """
        for place in (place for place in self.committed if place.offset >= 0):
            first, _ = consumer.get_watermark_offsets(place, 10)
            if place.offset < first:
                at = f"{place.topic}-{place.partition}@{place.offset}"
                raise Failed("offset-lost", f"{at} is not in the log, which begins at {first}")

    def on_revoke(self, _: Consumer, __: list[TopicPartition]) -> None:
        """Leave nothing half done to the next owner: take it back where that is possible, else
        commit it.
        """
        if self.in_transaction:
            # librdkafka may end one that the broker has yet to begin, which is fatal.
            self.producer.flush(10)
            self.producer.abort_transaction(10)
        else:
            self.commit()
        self.in_transaction = self.dirty = False

    def table(self, role: str) -> list[Message]:
        """Every committed row of a topic up to its end now; of an input, those that were
        applied.
        """
        topic = self.start["topics"][role]
        applied = {
            p.partition: max(0, p.offset) for p in self.committed if p.topic == topic
        } or None
        reader = Consumer(
            self.client
            | {
                "group.id": self.group + "-table",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
            }
            | {
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 10,
            }
        )
        partitions = [
            TopicPartition(topic, p) for p in reader.list_topics(topic, 10).topics[topic].partitions
        ]
        ends = {p.partition: 0 for p in partitions} if applied else self.ends(partitions)
        reader.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in ends])
        rows = list[Message]()
        while ends:
            for message in reader.consume(CHUNK, 0.01):
                error = message.error()
                if error is None:
                    rows.append(message)
                elif error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                elif (message.offset() or 0) >= ends.get(message.partition() or 0, 0):
                    ends.pop(message.partition() or 0, None)
        reader.close()
        return [
            row
            for row in rows
            if applied is None or (row.offset() or 0) < applied[row.partition() or 0]
        ]

    def ends(self, partitions: list[TopicPartition]) -> dict[int, int]:
        """Where a table ends: behind what a dead owner left open too, for committed rows of others
        may follow it.
        """
        admin, latest = AdminClient(self.client), OffsetSpec.latest()  # type: ignore[no-untyped-call]
        asked = admin.list_offsets(dict.fromkeys(partitions, latest))
        return {place.partition: future.result(10).offset for place, future in asked.items()}

    def run(self, stopping: threading.Event) -> None:
        """Read, apply, send, and commit once per interval; a graceful stop commits what was
        applied.
        """
        name = "persistence_interval_ms" if self.store else "commit_interval_ms"
        interval_s = int(self.start["parameters"].get(name, 100)) / 1000
        due = time.monotonic() + interval_s
        try:
            while not stopping.is_set():
                read = self.pending or self.consumer.consume(
                    CHUNK, max(0.005, min(0.05, due - time.monotonic()))
                )
                self.process([each for each in read if not self.is_end(each)])
                self.pending = []
                if time.monotonic() >= due:
                    self.commit()
                    due = time.monotonic() + interval_s
            self.send(self.program.rest())
            self.commit()
            self.through = {
                f"{place.topic}-{place.partition}": place.offset for place in self.positions()
            }
            self.consumer.close()
            self.monitor.close()
            if self.rows:
                self.rows.close()
        except KafkaException as error:
            self.give_up(error.args[0])
        except OSError as error:  # no room on the disk
            self.give_up(KafkaError(KafkaError._FS, str(error)))

    def measure(self) -> dict[str, Any]:
        """Count what the program knows, whatever it is for."""
        held = [each for each in vars(self.program).values() if isinstance(each, dict | set)]
        return {"type": "measured", "size": sum(map(len, held)), "unit": "rows"}

    def lag(self) -> dict[str, Any]:
        """By what the group has committed of its own partitions."""
        return lag(self.monitor, self.committed)

    def query(self, table: str, key: str) -> dict[str, Any]:
        """Answer from the output topic, whatever instance wrote it."""
        read = self.rows
        return (
            read.answer(key) if read and table == self.program.writes else super().query(table, key)
        )

    def process(self, messages: list[Message]) -> None:
        """Apply a chunk, and send what is due."""
        for message in messages:
            if error := message.error():
                # The coordinator is out of reach; the client asks again.
                if error.code() == KafkaError._TRANSPORT:
                    continue
                raise KafkaException(error)
            try:
                self.program.take(message)
            except Failed as failure:
                self.set_aside(message, failure)
            self.begin()
        for role, rows in self.program.upstream().items():
            self.hand_over(rows, self.start["topics"][role])
        self.send(self.program.changed())

    def set_aside(self, message: Message, failure: Failed) -> None:
        """Send what cannot be read to the dead letters, as an output like any other; stop where
        there is no topic for them.
        """
        if failure.kind != "poison" or "dead_letters" not in self.start["topics"]:
            raise failure
        where = {
            "topic": message.topic(),
            "partition": message.partition(),
            "offset": message.offset(),
        }
        added = [(name, str(said).encode()) for name, said in ({"reason": failure} | where).items()]
        letter = (
            message.key(),
            message.value(),
            [*(message.headers() or []), *added],
            message.timestamp()[1],
        )
        self.hand_over([letter], self.start["topics"]["dead_letters"])

    def is_end(self, message: Message) -> bool:
        """Whether it is the end of a partition; that is committed too, where nothing but markers
        lies before it.
        """
        if not (error := message.error()) or error.code() != KafkaError._PARTITION_EOF:
            return False
        if (message.offset() or 0) > max(
            0, self.settled.get((message.topic() or "", message.partition() or 0), 0)
        ):
            self.begin()
        return True

    def begin(self) -> None:
        """Something changes: open a transaction where the mode asks for one."""
        if self.exactly_once and not self.in_transaction:
            self.producer.begin_transaction()
            self.in_transaction = True
        self.dirty = True

    def send(self, rows: list[Row]) -> None:
        """Send rows of the last stage."""
        self.hand_over(rows, self.output)

    def hand_over(self, rows: list[Row], topic: str) -> None:
        """Hand rows to the producer; a refusal shows at the next commit."""
        if rows:
            self.begin()
        on_delivery = None if self.exactly_once else self.delivered
        for key, value, headers, timestamp_ms in rows:
            self.effects.report(key, value)
            while True:
                try:
                    self.producer.produce(
                        topic,
                        value,
                        key,
                        headers=headers,
                        timestamp=timestamp_ms,
                        on_delivery=on_delivery,
                    )
                    break
                except BufferError:  # the queue is full: let deliveries make room
                    self.producer.poll(0.1)
        self.producer.poll(0)

    def delivered(self, error: KafkaError | None, _: Message) -> None:
        """Remember the first refusal; in a transaction the client does so itself, and raises it in
        between.
        """
        self.refused = self.refused or error

    def commit(self) -> None:
        """Outputs first, then the states in the store, then the offsets; in one transaction under
        exactly_once.
        """
        if not self.dirty:
            return
        if self.producer.flush(30) and not self.refused:
            self.refused = KafkaError(
                KafkaError._TIMED_OUT, "outputs were not acknowledged within 30 s"
            )
        if self.refused:
            raise KafkaException(self.refused)
        if self.store:
            for stage, part in self.program.stages().items():
                self.store.write(stage, part.unsaved or {})
                part.unsaved = {}
        before, self.kept = self.kept, self.keep()
        positions = self.positions()
        if self.exactly_once:
            with_timeout(
                10, self.producer.send_offsets_to_transaction, positions, self.membership(), 10
            )
            self.producer.commit_transaction(30)
        else:
            self.consumer.commit(offsets=positions, asynchronous=False)
        self.settled |= {(p.topic, p.partition): p.offset for p in positions}
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
        """Where each partition goes on: the offset after the last record applied, or the one that
        it was started from.
        """
        positions = {(p.topic, p.partition): p.offset for p in self.committed if p.offset >= 0}
        positions |= {
            (p.topic, p.partition): p.offset
            for p in self.consumer.position(self.committed)
            if p.offset >= 0
        }
        return [TopicPartition(*place, offset, self.kept) for place, offset in positions.items()]

    def membership(self) -> object:
        """Who sends offsets into a transaction: the broker refuses a member that has lost its place
        in the group.
        """
        return self.consumer.consumer_group_metadata()

    def give_up(self, error: KafkaError) -> None:
        """Stop loudly, leaving no open transaction."""
        if self.in_transaction and error.code() not in FENCED:
            try:
                self.producer.abort_transaction(10)
            except KafkaException as failure:  # fenced, and the first error came of it
                error = failure.args[0]
        raise Failed(
            "fenced" if error.code() in FENCED else "storage", f"{error.name()}: {error.str()}"
        )
