"""Reading back what lies on the broker: records under both isolation levels, committed offsets,
ends, names.
"""

import threading
import time
from collections.abc import Callable, Container, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic  # type: ignore[attr-defined]

from upheld.errors import MachineProblem
from upheld.history.events import Offsets, Record
from upheld.kafka.raw import RawClient

READ_S = 30.0
_IDLE_MS = 1_000  # a record ends the wait at once; an empty answer every 10 ms took a fifth of a broker's time
_JUDGED_MS = 24 * 3_600_000  # no compaction of what is younger
_SEGMENT_MS = 1_000  # of a table that is to be compacted soon
Position = dict[int, int]  # partition -> next offset to read


def recorded(
    messages: Iterable[Any],
    seen_ms: Callable[[int, int], int],
    visible: Container[tuple[int, int]] | None = None,
    incarnation: int = 0,
) -> Iterator[Record]:
    """Make a record of each message of one topic.

    `seen_ms` says since when one is there, by partition and offset; `visible` holds the places of
    those that a read_committed reader is given, and is None where all are.
    """
    topic: str | None = None
    for message in messages:
        topic = topic or message.topic()
        partition = message.partition()
        offset = message.offset()
        yield Record.read(
            {
                "kind": "record",
                "topic": topic,
                "partition": partition,
                "offset": offset,
                "timestamp_ms": message.timestamp()[1],
                "key": message.key(),
                "value": message.value(),
                "headers": tuple(message.headers() or ()),
                "visible": visible is None or (partition, offset) in visible,
                "incarnation": incarnation,
                "seen_ms": seen_ms(partition, offset),
            }
        )


class Pace(NamedTuple):
    """What a broker makes its clients wait for, in milliseconds; without its word it is what Kafka
    ships.
    """

    min_session_ms: int = 6_000  # no member is given up sooner
    abort_check_ms: int = 10_000  # how often transactions past their timeout are looked for
    rebalance_ms: int = 3_000  # how long a new group waits for more members


_PACES = {
    "group.min.session.timeout.ms": "min_session_ms",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "abort_check_ms",
    "group.initial.rebalance.delay.ms": "rebalance_ms",
}


class Reader:
    """A consumer that reads one topic after another, and the topics that it has read."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.topics = set[str]()

    def read(self, topic: str, position: Position) -> list[Message]:
        """Read every record from this position to the end of a topic; moves the position on."""
        consumer = self.consumer
        if topic not in self.topics:
            # One that is assigned a topic that it does not know takes a second to begin (measured).
            consumer.list_topics(topic, READ_S)
            self.topics.add(topic)
        consumer.assign([TopicPartition(topic, p, o) for p, o in position.items()])
        unread, messages, deadline = set(position), [], time.monotonic() + READ_S
        while unread:
            if time.monotonic() > deadline:
                raise MachineProblem(f"{topic} could not be read to its end within {READ_S:g} s")
            for message in consumer.consume(5000, 0.01):
                error, partition, offset = message.error(), message.partition(), message.offset()
                assert partition is not None
                assert offset is not None
                if error is None:
                    messages.append(message)
                    position[partition] = offset + 1
                elif error.code() == KafkaError._PARTITION_EOF:
                    position[partition] = max(position[partition], offset)
                    unread.discard(partition)
                else:
                    raise KafkaException(error)
        consumer.unassign()
        return messages


class Readers:
    """The consumers of one isolation level: as many as were read with at once, since to make one
    takes longer than to read.
    """

    def __init__(self, make: Callable[[], Consumer]) -> None:
        self._make, self._idle = make, list[Reader]()
        self._lock = threading.Lock()

    def read(self, topic: str, position: Position) -> list[Message]:
        """Read a topic with a consumer that knows it, else with any, else with a new one."""
        with self._lock:
            reader = next((each for each in self._idle if topic in each.topics), None)
            reader = reader or next(iter(self._idle), None)
            if reader:
                self._idle.remove(reader)
        reader = reader or Reader(self._make())
        try:
            messages = reader.read(topic, position)
        except BaseException:  # nobody knows what it would read next
            reader.consumer.close()
            raise
        with self._lock:
            self._idle.append(reader)
        return messages

    def forget(self, topics: Iterable[str]) -> None:
        """Have topics looked for anew by who reads them next: they are gone, or have more
        partitions.
        """
        with self._lock:
            for reader in self._idle:
                reader.topics -= set(topics)

    def close(self) -> None:
        """Close those that are not reading."""
        with self._lock:
            while self._idle:
                self._idle.pop().consumer.close()


class Reading:
    """The harness's own clients on one broker, or on a cluster; nothing here belongs to a
    design.
    """

    def __init__(self, bootstrap: str, client: dict[str, str]) -> None:
        self.settings: dict[str, str | int | float | bool] = {
            "bootstrap.servers": bootstrap,
            "retry.backoff.ms": 20,
            "log_level": 0,
            **client,
        }
        self._client = client
        self._readers = {
            committed: Readers(partial(self._consumer, committed=committed))
            for committed in (True, False)
        }
        self._connect()
        self._canary: tuple[Producer, Consumer, str] | None = None

    def _connect(self) -> None:
        self.admin = AdminClient(self.settings)
        self.raw = RawClient(str(self.settings["bootstrap.servers"]), self._client)

    def reconnect(self) -> None:
        """Leave all connections to a broker that was away, and make new ones."""
        self._close_readers()
        self.raw.close()
        self._connect()

    def close(self) -> None:
        """Close every client."""
        self._close_readers()
        if self._canary:
            self._canary[1].close()
        self.raw.close()

    def pace(self) -> Pace:
        """The broker's own settings, where it may be asked for them."""
        broker = next(iter(self.admin.list_topics(timeout=READ_S).brokers))
        described = self.admin.describe_configs(
            [ConfigResource(ConfigResource.Type.BROKER, str(broker))]
        )
        try:
            (settings,) = (future.result(READ_S) for future in described.values())
        except KafkaException:
            return Pace()
        told = {field: settings[name].value for name, field in _PACES.items() if name in settings}
        return Pace(**{field: int(value) for field, value in told.items() if value})

    def _consumer(self, *, committed: bool, wait_ms: int = 10) -> Consumer:
        """One that is told where a log ends; an empty Fetch is answered after so many ms."""
        isolation = "read_committed" if committed else "read_uncommitted"
        return Consumer(
            self.settings
            | {
                "group.id": "upheld-reads-and-never-commits",
                "isolation.level": isolation,
                "enable.auto.commit": False,
            }
            | {
                "enable.partition.eof": True,
                "fetch.wait.max.ms": wait_ms,
                "auto.offset.reset": "error",
            }
        )

    def create(
        self,
        topics: dict[str, int],
        *,
        stamped: Container[str] = (),
        compacted: Container[str] = (),
        rolling: Container[str] = (),
    ) -> None:
        """Create topics (name -> partitions) that no cleaner touches while they are judged, but
        those that roll; the broker stamps some."""
        once = {
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0.01",
            "segment.ms": str(_SEGMENT_MS),
        }
        table = {"cleanup.policy": "compact", "min.compaction.lag.ms": str(_JUDGED_MS)}
        kept = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
        wanted = []
        for name, partitions in topics.items():
            config = once if name in rolling else table if name in compacted else kept
            stamps = {"message.timestamp.type": "LogAppendTime"} if name in stamped else {}
            wanted.append(NewTopic(name, partitions, config=config | stamps))
        for future in self.admin.create_topics(wanted).values():
            future.result(READ_S)
        self._are_led(topics)

    def grow(self, topic: str, partitions: int) -> None:
        """Add partitions to a topic, up to so many."""
        for future in self.admin.create_partitions([NewPartitions(topic, partitions)]).values():
            future.result(READ_S)
        self._forget([topic])
        self._are_led({topic: partitions})

    def _are_led(self, topics: dict[str, int]) -> None:
        """Wait until a Fetch of each partition is answered: what was created is not yet led."""
        for name, partitions in topics.items():
            self.raw.fetch(name, dict.fromkeys(range(partitions), 0), 1)

    def delete(self, topics: Iterable[str]) -> None:
        """Delete topics, so that a long run does not slow its own broker down."""
        topics = list(topics)
        if not topics:  # interrupted before there were any; the client refuses an empty list
            return
        self._forget(topics)
        for future in self.admin.delete_topics(topics).values():
            future.exception(READ_S)

    def cut(self, begins: dict[str, int]) -> None:
        """Delete what lies before these offsets (topic-partition -> the first that is kept)."""
        split = ((*place.rpartition("-")[::2], begin) for place, begin in begins.items())
        places = [TopicPartition(topic, int(partition), begin) for topic, partition, begin in split]
        for future in self.admin.delete_records(places).values():
            future.result(READ_S)

    def _forget(self, topics: Iterable[str]) -> None:
        gone = list(topics)
        for readers in self._readers.values():
            readers.forget(gone)

    def _close_readers(self) -> None:
        for readers in self._readers.values():
            readers.close()

    def records(self, topic: str, position: Position, *, committed: bool) -> list[Message]:
        """Every record from this position to the end that this isolation level has; moves the
        position on.
        """
        return self._readers[committed].read(topic, position)

    def committed(self, group: str, topics: dict[str, int], *, stable: bool) -> Offsets | None:
        """The group's committed offsets in topics (name -> partitions); None while a transaction
        may still change them.
        """
        return self.raw.committed(group, topics, stable=stable)

    def members(self, group: str) -> list[list[str]] | None:
        """What each member of a group holds (topic-partition), sorted; None while they do not agree
        on it.
        """
        (described,) = self.admin.describe_consumer_groups([group], request_timeout=READ_S).values()
        found = described.result(READ_S)
        if found.state not in {ConsumerGroupState.STABLE, ConsumerGroupState.EMPTY}:
            return None
        held = [
            member.assignment.topic_partitions if member.assignment else ()
            for member in found.members
        ]
        return sorted(sorted(f"{p.topic}-{p.partition}" for p in partitions) for partitions in held)

    def ends(
        self, topic: str, partitions: int, from_offsets: Position | None = None
    ) -> tuple[Position, Position]:
        """Last stable offset and high watermark of each partition."""
        stable, end = self.raw.ends(topic, from_offsets or dict.fromkeys(range(partitions), 0))
        return stable, end

    def names(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Every topic, every consumer group and every transactional id, Kafka's own and ours left
        out.
        """
        topics = tuple(
            sorted(
                t for t in self.admin.list_topics(timeout=READ_S).topics if not t.startswith("__")
            )
        )
        groups = self.admin.list_consumer_groups(request_timeout=READ_S).result(READ_S).valid
        ids = (i for i in self.raw.transactional_ids() if not i.startswith("upheld-"))
        return topics, tuple(sorted(g.group_id for g in groups)), tuple(sorted(ids))

    def sizes(self, prefix: str) -> dict[str, int]:
        """The partitions of each topic whose name begins like this."""
        known = self.admin.list_topics(timeout=READ_S).topics
        return {
            name: len(topic.partitions)
            for name, topic in sorted(known.items())
            if name.startswith(prefix)
        }

    def canary(self, topic: str) -> None:
        """Set up the control record's own topic and clients, once a run."""
        self.create({topic: 1})
        consumer = self._consumer(committed=True, wait_ms=_IDLE_MS)
        consumer.assign([TopicPartition(topic, 0, 0)])
        self._canary = (
            Producer(self.settings | {"enable.idempotence": True, "linger.ms": 0}),
            consumer,
            topic,
        )

    def canary_ms(self) -> int:
        """How long a record takes from produce to a read_committed reader, right now, with no
        design in between.
        """
        assert self._canary
        producer, consumer, topic = self._canary
        began = time.monotonic()
        token = str(time.monotonic_ns()).encode()
        producer.produce(topic, token)
        producer.poll(0)
        while time.monotonic() - began < READ_S:
            message = consumer.poll(0.5)
            if message is not None and not message.error() and message.value() == token:
                break
        return round((time.monotonic() - began) * 1000)
