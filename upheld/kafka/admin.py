"""Create, grow, truncate and delete topics, and ask for the broker's settings.

The cluster may be the user's, so a name is no authority there. A topic or a group is changed only
if it is provably the harness's own. Either the harness created the topic, or two things hold. The
name contains a random id that was reserved, and the topic was absent when it was reserved.
"""

import contextlib
import time
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
)

from upheld.errors import MachineProblem
from upheld.kafka.clients import ANSWER_S, Clients
from upheld.verdicts import HarnessError

LEAVE_S: Final = 30.0  # a group has members until their session times out

_LOOK_S: Final = 0.5
_AT_ONCE: Final = 500  # topics that are deleted by one request
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


@dataclass(frozen=True)
class Reserved:
    """A random id, and the topics and the groups that were there before its first use."""

    own_id: str
    topics: frozenset[str]
    groups: frozenset[str]

    def owns_topic(self, name: str) -> bool:
        """Return whether a topic was made under this id."""
        return self.own_id in name and name not in self.topics

    def owns_group(self, name: str) -> bool:
        """Return whether a group was made under this id."""
        return self.own_id in name and name not in self.groups


class Admin(Clients):
    """Change topics of the harness and of designs, and read the broker's settings."""

    def __init__(self, bootstrap: str, client: dict[str, str]) -> None:
        super().__init__(bootstrap, client)
        self._created: set[str] = set()
        self._reserved: dict[str, Reserved] = {}

    # --- what is the harness's own

    def reserve(self, own_id: str, *, groups_too: bool = False) -> None:
        """Note what is on the broker before a random id is used in names.

        Args:
            own_id: The id, which no other run has.
            groups_too: Whether `leave` is to delete groups under this id as well.
        """
        groups = frozenset(self._groups()) if groups_too else frozenset[str]()
        self._reserved[own_id] = Reserved(own_id, frozenset(self._topics()), groups)

    def clear(self, own_id: str) -> list[str]:
        """Delete all topics under a reserved id, and return their names, sorted.

        Topics that a design did not declare are among them. A topic that was there before the id
        was reserved is left alone, whatever its name.
        """
        reserved = self._reserved.get(own_id)
        if reserved is None:  # the attempt ended before its first topic
            return []
        found = sorted(filter(reserved.owns_topic, self._topics()))
        self._delete(found)
        return found

    def leave(self, within_s: float = LEAVE_S) -> list[str]:
        """Delete all topics and groups of the harness, and return what stays.

        It is for a cluster that outlives the run. A group is tried until its members are gone.

        Args:
            within_s: The longest time for that, in seconds.
        """
        until = time.monotonic() + within_s
        while True:
            try:
                left = self._delete_left()
            except KafkaException as refusal:
                return [f"what it made, for the cluster says: {refusal.args[0].str()}"]
            if not left or time.monotonic() > until:
                return left
            time.sleep(_LOOK_S)

    def _delete_left(self) -> list[str]:
        """Try once to delete all that is the harness's own; return what was still there."""
        topics = [name for name in self._topics() if self._owns(name)]
        self._delete(topics)
        groups = [
            name
            for name in (self._groups() if self._reserved else ())
            if any(reserved.owns_group(name) for reserved in self._reserved.values())
        ]
        if groups:
            for future in self.admin.delete_consumer_groups(groups).values():
                with contextlib.suppress(TimeoutError):
                    future.exception(ANSWER_S)
        return [*(f"topic {name}" for name in topics), *(f"group {name}" for name in groups)]

    def _topics(self) -> Iterable[str]:
        return self.admin.list_topics(timeout=ANSWER_S).topics

    def _groups(self) -> set[str]:
        """Return all groups; none if the cluster does not tell them."""
        with contextlib.suppress(OSError, MachineProblem):
            return self.groups.names()
        return set()

    def _owns(self, topic: str) -> bool:
        return topic in self._created or any(
            reserved.owns_topic(topic) for reserved in self._reserved.values()
        )

    def _demand_own(self, topics: Iterable[str]) -> None:
        """Raise HarnessError for a topic that is not the harness's to change."""
        for topic in topics:
            if not self._owns(topic):
                raise HarnessError(
                    f"topic {topic} was not made in this run, so it is neither changed nor deleted"
                )

    # --- topics

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
        for name, future in self.admin.create_topics(wanted).items():
            future.result(ANSWER_S)
            self._created.add(name)
        self._are_led(topics)

    def grow(self, topic: str, partitions: int) -> None:
        """Add partitions to a topic until it has that many."""
        self._demand_own([topic])
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
        self._demand_own(names)
        self._delete(names)

    def _delete(self, names: list[str]) -> None:
        if not names:  # the client refuses an empty list
            return
        self.forget(names)
        for begin in range(0, len(names), _AT_ONCE):
            for future in self.admin.delete_topics(names[begin : begin + _AT_ONCE]).values():
                with contextlib.suppress(TimeoutError):
                    future.exception(ANSWER_S)
        self._created.difference_update(names)

    def limit(self, topic: str, batch_bytes: int | None) -> None:
        """Set the largest batch that a topic takes, in bytes; None: as the broker has it."""
        self._demand_own([topic])
        operation = AlterConfigOpType.DELETE if batch_bytes is None else AlterConfigOpType.SET
        entry = ConfigEntry(
            "max.message.bytes", str(batch_bytes or ""), incremental_operation=operation
        )
        resource = ConfigResource("topic", topic, incremental_configs=[entry])
        for future in self.admin.incremental_alter_configs([resource]).values():
            future.result(ANSWER_S)

    def truncate(self, begins: dict[str, int]) -> None:
        """Delete the records before these offsets (topic-partition to the first one kept)."""
        places = []
        for place, begin in begins.items():
            topic, _, partition = place.rpartition("-")
            places.append(TopicPartition(topic, int(partition), begin))
        self._demand_own(place.topic for place in places)
        for future in self.admin.delete_records(places).values():
            future.result(ANSWER_S)

    def partitions(self, topic: str, within_s: float = 0.0) -> int:
        """Return the number of partitions of a topic; 0 if there is none within that time."""
        until = time.monotonic() + within_s
        while True:
            if found := self.sizes(topic).get(topic):
                return found
            if time.monotonic() > until:
                return 0
            time.sleep(_LOOK_S)

    def sizes(self, part: str) -> dict[str, int]:
        """Return the number of partitions of each topic that has this part in its name."""
        known = self.admin.list_topics(timeout=ANSWER_S).topics
        return {
            name: len(topic.partitions) for name, topic in sorted(known.items()) if part in name
        }
