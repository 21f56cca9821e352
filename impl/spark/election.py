"""Which instance of an application works: the one that holds the only partition of a topic that
holds nothing else.

Kafka's group coordinator sees to it: it gives the partition to one member, to another one when that
leaves, or is silent for its session timeout, and takes it from nobody because somebody joins. That
one works is not to say that only one writes: who was silent may not know that it has lost the
partition. Whoever takes over fences it.
"""

import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from upheld.adapter import Failed

DEADLINE_S = 50
LOOK_S = 0.05


class Election:
    """A member of the group; when it is made, it is known whether it leads."""

    def __init__(self, start: dict[str, Any], client: dict[str, Any]) -> None:
        self.topic = f"{start['application_id']}-leader"
        admin = AdminClient(client)
        try:
            admin.create_topics([NewTopic(self.topic, 1)])[self.topic].result(DEADLINE_S)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
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
        self.has_joined = self.leads = False
        self.consumer.subscribe(
            [self.topic], on_assign=self._assigned, on_revoke=self._lost, on_lost=self._lost
        )
        until = time.monotonic() + DEADLINE_S
        while not self.has_joined:
            if time.monotonic() > until:
                raise Failed("conflict", f"group {self.topic} admits nobody within {DEADLINE_S} s")
            self.look(LOOK_S)

    def look(self, seconds: float) -> bool:
        """Whether it leads, after so long at most."""
        self.consumer.poll(seconds)
        return self.leads

    def close(self) -> None:
        """Leave, so that another one is elected at once."""
        self.consumer.close()

    def _assigned(self, _: Consumer, partitions: list[Any]) -> None:
        self.has_joined, self.leads = True, self.leads or bool(partitions)

    def _lost(self, *_: Any) -> None:
        self.leads = False
