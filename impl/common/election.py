"""The election of the instance that works, if an application has several.

It holds the only partition of a topic that holds nothing else. Kafka's group coordinator gives the
partition to one member. If that member leaves, or is silent for its session timeout, another one
gets the partition. A member that joins takes it from no other.

That one instance works is not to say that only one writes. A silent instance may not know that it
has lost the partition. So the instance that takes over fences it.
"""

import time
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from upheld.adapter import Failed
from upheld.impl.common.topics import create_topic

DEADLINE_S = 50
LOOK_S = 0.05


class Election:
    """A member of the group; once it is made, it is known whether it leads."""

    def __init__(self, start: dict[str, Any], client: dict[str, Any]) -> None:
        self.topic = f"{start['application_id']}-leader"
        try:
            create_topic(AdminClient(client), self.topic, 1, DEADLINE_S)
        except KafkaException as error:
            raise Failed("storage", f"{self.topic} cannot be made: {error.args[0]}") from error
        self.consumer = Consumer(
            client
            | {
                "group.id": self.topic,
                "partition.assignment.strategy": "cooperative-sticky",
                "session.timeout.ms": start["session_timeout_ms"],
                "heartbeat.interval.ms": start["session_timeout_ms"] // 10,
                "enable.auto.commit": False,
            }
        )
        self.has_joined = False
        self.leads = False
        self.consumer.subscribe(
            [self.topic], on_assign=self._assigned, on_revoke=self._lost, on_lost=self._lost
        )
        until = time.monotonic() + DEADLINE_S
        while not self.has_joined:
            if time.monotonic() > until:
                raise Failed("conflict", f"group {self.topic} admits nobody within {DEADLINE_S} s")
            self.look(LOOK_S)

    def look(self, seconds: float) -> bool:
        """Return whether it leads, after at most this long."""
        self.consumer.poll(seconds)
        return self.leads

    def close(self) -> None:
        """Leave, so that another instance is elected at once."""
        self.consumer.close()

    def _assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.has_joined = True
        self.leads = self.leads or bool(partitions)

    def _lost(self, *_: object) -> None:
        self.leads = False
