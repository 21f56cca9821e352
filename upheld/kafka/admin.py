"""Create, grow, truncate and delete topics, and ask for the broker's settings."""

from collections.abc import Container, Iterable
from typing import Final, NamedTuple

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import (
    ConfigResource,
    NewPartitions,
    NewTopic,
)

from upheld.kafka.clients import ANSWER_S, Clients

_JUDGED_MS: Final = 24 * 3_600_000  # younger records are never compacted
_SEGMENT_MS: Final = 1_000  # of a table that is to be compacted soon
_ROLLING: Final = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.ms": str(_SEGMENT_MS),
}
_COMPACTED: Final = {"cleanup.policy": "compact", "min.compaction.lag.ms": str(_JUDGED_MS)}
_KEPT: Final = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
_STAMPED: Final = {"message.timestamp.type": "LogAppendTime"}


class Pace(NamedTuple):
    """The times that a broker makes its clients wait, in milliseconds.

    The defaults are those that Kafka ships.
    """

    min_session_ms: int = 6_000  # a member is given up no sooner
    abort_check_ms: int = 10_000  # how often the broker looks for transactions past their timeout
    rebalance_ms: int = 3_000  # how long a new group waits for more members


_PACES: Final = {
    "group.min.session.timeout.ms": "min_session_ms",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "abort_check_ms",
    "group.initial.rebalance.delay.ms": "rebalance_ms",
}


class Admin(Clients):
    """Change topics, and read the broker's settings."""

    def pace(self) -> Pace:
        """Return the broker's own times, or Kafka's where it does not tell them."""
        broker = next(iter(self.admin.list_topics(timeout=ANSWER_S).brokers))
        described = self.admin.describe_configs(
            [ConfigResource(ConfigResource.Type.BROKER, str(broker))]
        )
        try:
            (settings,) = (future.result(ANSWER_S) for future in described.values())
        except KafkaException:
            return Pace()
        found = {field: settings[name].value for name, field in _PACES.items() if name in settings}
        return Pace(**{field: int(value) for field, value in found.items() if value})

    def create(
        self,
        topics: dict[str, int],
        *,
        stamped: Container[str] = (),
        compacted: Container[str] = (),
        rolling: Container[str] = (),
    ) -> None:
        """Create topics (name to partitions), and wait until each has its leaders.

        No cleaner touches records while they are judged, except in `rolling` topics. In `stamped`
        topics the broker sets each timestamp (LogAppendTime).
        """
        wanted = []
        for name, partitions in topics.items():
            config = _ROLLING if name in rolling else _COMPACTED if name in compacted else _KEPT
            stamps = _STAMPED if name in stamped else {}
            wanted.append(NewTopic(name, partitions, config=config | stamps))
        for future in self.admin.create_topics(wanted).values():
            future.result(ANSWER_S)
        self._are_led(topics)

    def grow(self, topic: str, partitions: int) -> None:
        """Add partitions to a topic until it has that many."""
        for future in self.admin.create_partitions([NewPartitions(topic, partitions)]).values():
            future.result(ANSWER_S)
        self.forget([topic])
        self._are_led({topic: partitions})

    def _are_led(self, topics: dict[str, int]) -> None:
        """Wait until a Fetch of each partition is answered: a new one has no leader at first."""
        for name, partitions in topics.items():
            self.raw.fetch(name, dict.fromkeys(range(partitions), 0), 1)

    def delete(self, topics: Iterable[str]) -> None:
        """Delete topics, so that a long run does not slow its own broker down."""
        names = list(topics)
        if not names:  # the run was interrupted early; the client refuses an empty list
            return
        self.forget(names)
        for future in self.admin.delete_topics(names).values():
            future.exception(ANSWER_S)

    def truncate(self, begins: dict[str, int]) -> None:
        """Delete the records before these offsets (topic-partition to the first one kept)."""
        places = []
        for place, begin in begins.items():
            topic, _, partition = place.rpartition("-")
            places.append(TopicPartition(topic, int(partition), begin))
        for future in self.admin.delete_records(places).values():
            future.result(ANSWER_S)

    def sizes(self, prefix: str) -> dict[str, int]:
        """Return the number of partitions of each topic whose name begins with a prefix."""
        known = self.admin.list_topics(timeout=ANSWER_S).topics
        return {
            name: len(topic.partitions)
            for name, topic in sorted(known.items())
            if name.startswith(prefix)
        }
