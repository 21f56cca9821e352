"""The consumer side of the plain design: the partitions it holds, and their state.

State is read back from Kafka whenever partitions are assigned, at a start or later.
"""

import json
import time
from abc import abstractmethod
from pathlib import Path
from typing import Any, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from upheld.adapter import Design, Failed
from upheld.impl.common.stores import Store, loudly
from upheld.impl.common.topics import topic_ids
from upheld.impl.plain.programs import PROGRAMS, Place, Program, Waiting

SETTLED_S: Final = 30  # a transaction of another instance is decided by then
# An open transaction may hold the offsets, or the next heartbeat says that the member has moved on.
PENDING: Final = {KafkaError.UNSTABLE_OFFSET_COMMIT, KafkaError.STALE_MEMBER_EPOCH}
CHUNK: Final = 500  # records applied together; what they change is sent once


class Group(Design):
    """A member of the application's consumer group."""

    programs = PROGRAMS
    isolation = "read_committed"

    start: dict[str, Any]  # the request that the design was started with
    program: Program
    client: dict[str, Any]  # the settings that all clients share
    group: str
    folder: Path  # shared, and outlives an instance
    store: Store | None
    store_kind: str | None
    exactly_once: bool
    consumer: Consumer
    producer: Producer
    after: dict[Place, int]  # where another cluster has ended, if nothing was committed there yet
    assigned: bool  # since the start, at least once
    in_transaction: bool
    dirty: bool  # something is to be committed
    committed: list[TopicPartition]  # of the partitions held, as it was when they were assigned
    settled: dict[Place, int]  # as it is now
    kept: dict[Place, str]  # the names under which the last commit left what waits of a partition
    chunk: list[Message]  # read and not applied yet

    @abstractmethod
    def apply_chunk(self) -> None:
        """Apply what was read."""

    @abstractmethod
    def commit(self) -> None:
        """Commit what was applied."""

    def on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Read the state back, then play from the committed offsets."""
        self.program = self.programs[self.start["program"]]()
        self.program.parameters = self.start["parameters"]
        self.program.topic_ids = self.topic_ids()
        self.chunk = []
        self.begin_after(consumer, partitions)
        self.committed = settled(consumer, partitions)
        self.settled = offsets_of(self.committed)
        self.look_for_a_gap(consumer)
        if self.store:
            with loudly(self.store_kind):
                for stage, part in self.program.stages().items():
                    part.take_up(self.store.rows(stage))
                    part.unsaved = {}
        else:
            self.program.restore([row for role in self.program.tables for row in self.table(role)])
        self.kept = {
            Place(each.topic, each.partition): each.metadata
            for each in self.committed
            if each.metadata
        }
        for place, name in self.kept.items():
            self.program.load(place, self.kept_as(name))
        self.begin_at_committed(consumer)
        self.assigned = True

    def begin_at_committed(self, consumer: Consumer) -> None:
        """Read from the committed offsets and no others: what waits belongs to them."""
        consumer.assign(self.committed)

    def begin_after(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Commit where another cluster has ended, of partitions that are assigned since."""
        places = [Place(each.topic, each.partition) for each in partitions]
        offsets = [
            TopicPartition(*place, self.after.pop(place)) for place in places if place in self.after
        ]
        if offsets:
            consumer.commit(offsets=offsets, asynchronous=False)

    def on_revoke(self, _: Consumer, __: list[TopicPartition]) -> None:
        """Leave nothing half done to the next owner.

        An open transaction is aborted. Without transactions what was read is applied and committed.
        """
        if not self.exactly_once:
            self.apply_chunk()
            self.commit()
        self.drop()

    def drop(self) -> None:
        """Drop what was read and is not committed, with the transaction that holds it."""
        if self.in_transaction:
            # librdkafka may end one that the broker has yet to begin, which is fatal.
            self.producer.flush(10)
            self.producer.abort_transaction(10)
        self.chunk = []
        self.in_transaction = False
        self.dirty = False

    def topic_ids(self) -> dict[str, bytes]:
        """Return the ids of the topics that are read.

        A topic that has the name of a deleted one has another id. So an applied position of the
        deleted topic says nothing of it.
        """
        return topic_ids(self.client, [self.start["topics"][role] for role in self.program.reads])

    def kept_as(self, name: str) -> Waiting:
        """Return what waited at the commit of that name."""
        try:
            waiting: Waiting = json.loads((self.folder / name).read_text())
        except (OSError, ValueError) as error:
            said = f"{name} cannot be read, and a commit names it: {error}"
            raise Failed("storage", said, file=name) from None
        return waiting

    def look_for_a_gap(self, consumer: Consumer) -> None:
        """Stop if a committed offset has been deleted.

        The client would go on after the gap, as at a first start.
        """
        for place in (place for place in self.committed if place.offset >= 0):
            first, _ = consumer.get_watermark_offsets(place, 10)
            if place.offset < first:
                at = f"{place.topic}-{place.partition}@{place.offset}"
                raise Failed(
                    "offset-lost",
                    f"{at} is not in the log, which begins at {first}",
                    topic=place.topic,
                    partition=place.partition,
                    offset=place.offset,
                )

    def table(self, role: str) -> list[Message]:
        """Return every committed row of a topic up to its end now.

        Of an input these are only the rows that were applied. It is held whole, or not at all.
        """
        topic = self.start["topics"][role]
        applied = {p.partition: max(0, p.offset) for p in self.committed if p.topic == topic}
        reader = self.reader()
        known = reader.list_topics(topic, 10).topics[topic].partitions
        partitions = [TopicPartition(topic, partition) for partition in known]
        ends = dict.fromkeys(known, 0) if applied else self.ends(partitions)
        reader.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in ends])
        rows = read_to(reader, ends)
        reader.close()
        if not applied:
            return rows
        return [row for row in rows if (row.offset() or 0) < applied[row.partition() or 0]]

    def reader(self) -> Consumer:
        """Return a consumer that reads tables from their beginning, and joins no group."""
        settings = {
            "group.id": self.group + "-table",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 10,
        }
        return Consumer(self.client | settings)

    def ends(self, partitions: list[TopicPartition]) -> dict[int, int]:
        """Return the end offset of each partition.

        The end lies after what a dead owner has left open too: committed rows of other instances
        may follow that.
        """
        admin = AdminClient(self.client)
        latest = OffsetSpec.latest()
        asked = admin.list_offsets(dict.fromkeys(partitions, latest))
        return {place.partition: future.result(10).offset for place, future in asked.items()}

    def positions(self) -> list[TopicPartition]:
        """Return where each partition goes on.

        That is the offset after the last record applied, or the one that it was started from.
        """
        positions = {
            place: offset for place, offset in offsets_of(self.committed).items() if offset >= 0
        }
        read = offsets_of(self.consumer.position(self.committed))
        positions |= {place: offset for place, offset in read.items() if offset >= 0}
        return [
            TopicPartition(*place, offset, self.kept.get(place, ""))
            for place, offset in positions.items()
        ]

    def membership(self) -> object:
        """Return the member that sends offsets into a transaction.

        The broker refuses a member that has lost its place in the group.
        """
        return self.consumer.consumer_group_metadata()


def settled(consumer: Consumer, places: list[TopicPartition]) -> list[TopicPartition]:
    """Return the committed offsets, once no open transaction holds any of them.

    The instance that had a partition before may have committed a moment ago. Its offsets are
    pending until the broker has written the end of its transaction.
    """
    deadline = time.monotonic() + SETTLED_S
    while True:
        try:
            committed = consumer.committed(places, SETTLED_S)
            errors = [place.error for place in committed if place.error]
        except KafkaException as error:
            errors = [error.args[0]]
        if not errors:
            return committed
        is_pending = all(each.code() in PENDING for each in errors)
        if not is_pending or time.monotonic() > deadline:
            raise KafkaException(errors[0])
        time.sleep(0.02)


def offsets_of(places: list[TopicPartition]) -> dict[Place, int]:
    """Return the offset of each partition."""
    return {Place(place.topic, place.partition): place.offset for place in places}


def read_to(reader: Consumer, ends: dict[int, int]) -> list[Message]:
    """Return all rows up to these ends; `ends` is empty then."""
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
    return rows
