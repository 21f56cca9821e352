"""Read records at both isolation levels, ends and names."""

from collections.abc import Callable, Container, Iterable, Iterator
from functools import partial
from typing import Final, NamedTuple

from confluent_kafka import Consumer

from upheld.history.events import Record
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

    def ends(
        self, topic: str, partitions: int, from_offsets: Position | None = None
    ) -> tuple[Position, Position]:
        """Return the last stable offsets and the high watermarks of a topic's partitions."""
        return self.raw.ends(topic, from_offsets or dict.fromkeys(range(partitions), 0))

    def names(self) -> Names:
        """Return the names of all topics, groups and transactional ids."""
        topics = self.admin.list_topics(timeout=ANSWER_S).topics
        ids = self.raw.transactional_ids()
        return Names(
            topics=tuple(sorted(t for t in topics if not t.startswith(KAFKAS_PREFIX))),
            groups=tuple(sorted(self.groups.names())),
            transactional_ids=tuple(sorted(i for i in ids if not i.startswith(OWN_PREFIX))),
        )
