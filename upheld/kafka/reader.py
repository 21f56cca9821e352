"""Read records at both isolation levels, committed offsets, ends and names."""

from collections.abc import Callable, Container, Iterable, Iterator
from functools import partial
from typing import Final, NamedTuple

from confluent_kafka import Consumer, ConsumerGroupState

from upheld.history.events import Offsets, Record
from upheld.kafka.clients import ANSWER_S, Clients
from upheld.kafka.consumers import ConsumerPool, Position, ReadMessage

OWN_PREFIX: Final = "upheld-"  # of the harness's own transactional ids
KAFKAS_PREFIX: Final = "__"  # of Kafka's own topics


class Names(NamedTuple):
    """Names on a broker, sorted, without Kafka's own topics and the harness's own ids."""

    topics: tuple[str, ...]
    groups: tuple[str, ...]
    transactional_ids: tuple[str, ...]


def recorded(
    messages: Iterable[ReadMessage],
    seen_ms: Callable[[int, int], int],
    visible: Container[tuple[int, int]] | None = None,
    incarnation: int = 0,
) -> Iterator[Record]:
    """Yield the record of each message of one topic.

    Args:
        messages: The messages, all of one topic.
        seen_ms: The time at which a record was first seen, by partition and offset.
        visible: The places that a read_committed reader gets, or None if it gets all.
        incarnation: The number of the topic among those of its name, from zero.
    """
    topic: str | None = None
    for message in messages:
        topic = topic or message.topic()
        partition = message.partition()
        offset = message.offset()
        yield Record(
            topic,
            partition,
            offset,
            message.timestamp()[1],
            message.key(),
            message.value(),
            tuple(message.headers() or ()),
            visible is None or (partition, offset) in visible,
            incarnation,
            seen_ms(partition, offset),
        )


class Reader(Clients):
    """Read what is on a broker or a cluster, without any change to it."""

    def __init__(self, bootstrap: str, client: dict[str, str]) -> None:
        super().__init__(bootstrap, client)
        self._pools = {
            committed: ConsumerPool(partial(self._consumer, committed=committed))
            for committed in (True, False)
        }

    def reconnect(self) -> None:
        """Leave all connections to a broker that was away, and make new ones."""
        self._close_consumers()
        super().reconnect()

    def close(self) -> None:
        """Close every client."""
        self._close_consumers()
        super().close()

    def _close_consumers(self) -> None:
        for pool in self._pools.values():
            pool.close()

    def forget(self, topics: Iterable[str]) -> None:
        """Have topics looked up again before they are read."""
        gone = list(topics)
        for pool in self._pools.values():
            pool.forget(gone)

    def _consumer(self, *, committed: bool, wait_ms: int = 10) -> Consumer:
        """Return a consumer that hears of ends, and of an empty Fetch after some milliseconds."""
        return Consumer(
            self.settings
            | {
                "group.id": "upheld-reads-and-never-commits",
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": wait_ms,
                "auto.offset.reset": "error",
            }
        )

    def records(self, topic: str, position: Position, *, committed: bool) -> list[ReadMessage]:
        """Return all records from a position to the end, and move the position on.

        If `committed`, the end is the last stable offset, and aborted records are left out.
        """
        return self._pools[committed].read(topic, position)

    def committed(self, group: str, topics: dict[str, int], *, stable: bool) -> Offsets | None:
        """Return a group's committed offsets in topics (name to partitions).

        It is None while the offsets are not known. If `stable`, it is also None while a transaction
        may still change them.
        """
        return self.raw.committed(group, topics, stable=stable)

    def members(self, group: str) -> list[list[str]] | None:
        """Return the partitions (topic-partition) of each member of a group, sorted.

        It is None while the members do not agree on an assignment.
        """
        described = self.admin.describe_consumer_groups([group], request_timeout=ANSWER_S)
        (future,) = described.values()
        found = future.result(ANSWER_S)
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
        """Return the last stable offsets and the high watermarks of a topic's partitions."""
        return self.raw.ends(topic, from_offsets or dict.fromkeys(range(partitions), 0))

    def names(self) -> Names:
        """Return the names of all topics, consumer groups and transactional ids."""
        topics = self.admin.list_topics(timeout=ANSWER_S).topics
        groups = self.admin.list_consumer_groups(request_timeout=ANSWER_S).result(ANSWER_S).valid
        ids = self.raw.transactional_ids()
        return Names(
            topics=tuple(sorted(t for t in topics if not t.startswith(KAFKAS_PREFIX))),
            groups=tuple(sorted(group.group_id for group in groups)),
            transactional_ids=tuple(sorted(i for i in ids if not i.startswith(OWN_PREFIX))),
        )
