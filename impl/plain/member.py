"""The instance as a member of its group, by either of two protocols of Kafka.

By the classic protocol an assignment is whole: it replaces the one before. By the protocol of
KIP-848 (`group.protocol=consumer`) the broker assigns, and an assignment comes in increments. A
member is told which partitions are new and which ones it has to give up, and it keeps the others.
"""

import time
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from upheld.adapter import Failed
from upheld.impl.common.clients import forward_errors
from upheld.impl.plain.group import offsets_of
from upheld.impl.plain.loop import Loop

BY_THE_BROKER: Final = "consumer"  # the protocol by which the broker assigns
# The broker has moved the member on, and the member has not heard of it yet.
STALE: Final = {KafkaError.STALE_MEMBER_EPOCH, KafkaError.ILLEGAL_GENERATION}


class Member(Loop):
    """Joins the group, and follows its assignments.

    Each increment is made whole. The instance leaves nothing half done, reads the state of all
    partitions that it holds now, and plays all of them from the committed offsets.
    """

    @property
    def is_incremental(self) -> bool:
        """Whether assignments come in increments."""
        return self.start.get("group_protocol") == BY_THE_BROKER

    def member_settings(self) -> dict[str, Any]:
        """Return the settings of the consumer that depend on the protocol."""
        if self.is_incremental:
            # The session is the group's. A static member would keep its partitions when it leaves.
            return {"group.protocol": BY_THE_BROKER}
        return {
            # A restart takes its own place at once, and fences the dead instance.
            "group.instance.id": self.member(),
            "session.timeout.ms": self.start["session_timeout_ms"],
            "heartbeat.interval.ms": self.start["session_timeout_ms"] // 4,
        }

    def topics(self) -> list[str]:
        """Return the topics that are read."""
        return [self.start["topics"][role] for role in self.program.reads]

    def places(self) -> list[TopicPartition]:
        """Return every partition of the topics that are read."""
        return [
            TopicPartition(topic, partition)
            for topic in self.topics()
            for partition in self.producer.list_topics(topic, 10).topics[topic].partitions
        ]

    def member(self) -> str:
        """Return the name of the group's member, another one if partitions were added.

        A static member that is back within its session gets its old partitions, and nobody looks
        for new ones (KAFKA-13435). Another member makes the group look: all is assigned anew once
        the session of the old one is over.
        """
        return f"{self.start['instance']}-{len(self.places())}"

    def take_every_partition(self) -> None:
        """Take all partitions without the group, which has no member: nobody else works."""
        self.on_assign(self.consumer, self.places())

    def join_group(self) -> None:
        """Join the group, and wait until partitions are assigned."""
        self.consumer.subscribe(self.topics(), **self.callbacks())
        deadline = time.monotonic() + 50
        while not self.assigned:
            if time.monotonic() > deadline:
                raise Failed("conflict", f"group {self.group} gave no partitions within 50 s")
            self.read_chunk(0.05)

    def callbacks(self) -> dict[str, Callable[[Consumer, list[TopicPartition]], None]]:
        """Return what the client calls when the assignment changes."""
        given = self.on_given if self.is_incremental else self.on_assign
        taken = self.on_taken if self.is_incremental else self.on_revoke
        return {
            "on_assign": forward_errors(given, self.give_up),
            "on_revoke": forward_errors(taken, self.give_up),
        }

    def on_given(self, consumer: Consumer, new: list[TopicPartition]) -> None:
        """Take new partitions beside those that are kept."""
        self.on_revoke(consumer, [])
        self.hold(consumer, [*consumer.assignment(), *new])

    def on_taken(self, consumer: Consumer, gone: list[TopicPartition]) -> None:
        """Give partitions up, and go on with those that are kept."""
        self.on_revoke(consumer, gone)
        consumer.incremental_unassign(gone)
        self.hold(consumer, consumer.assignment())

    def hold(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        """Begin with all partitions that are held now, unless there is none."""
        if places:
            self.on_assign(consumer, places)
        else:
            self.committed = []

    def begin_at_committed(self, consumer: Consumer) -> None:
        """Read from the committed offsets, and move what is kept back to them.

        The state was read as of these offsets. A record that was read since then is not in it.
        """
        if not self.is_incremental:
            super().begin_at_committed(consumer)
            return
        kept = offsets_of(consumer.assignment())
        begins = {
            place: TopicPartition(*place, offset if offset >= 0 else OFFSET_BEGINNING)
            for place, offset in offsets_of(self.committed).items()
        }
        consumer.incremental_assign([at for place, at in begins.items() if place not in kept])
        for place in kept:
            consumer.seek(begins[place])

    def commit(self) -> None:
        """Commit, or begin again where the last commit was if this one came too late.

        The assignment has changed on the broker then. The client hears of it by a heartbeat.
        """
        try:
            super().commit()
        except KafkaException as error:
            if not self.is_incremental or error.args[0].code() not in STALE:
                raise
            self.drop()
            self.hold(self.consumer, self.consumer.assignment())
