"""A topic that is read as a table, by its last committed row of each key.

A design that answers queries from here shows nothing that is not committed, and nothing before all
of the topic was read. Every instance has all of the table, so each can answer for another one that
is down.
"""

import threading
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

CHUNK: Final = 500


class Table:
    """A table that follows its topic on a thread of its own until it is closed."""

    def __init__(self, client: dict[str, Any], group: str, topic: str) -> None:
        self.rows: dict[str, str] = {}
        settings = {"group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
        reading = {
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
        }
        self.consumer = Consumer(client | settings | reading)
        self.unread = set(self.consumer.list_topics(topic, 10).topics[topic].partitions)
        self.consumer.assign(
            [TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in self.unread]
        )
        self.closing = threading.Event()
        self.thread = threading.Thread(target=self.follow, name="table", daemon=True)
        self.thread.start()

    def follow(self) -> None:
        """Take each row in its turn.

        A partition counts as read when its end has been reached once.
        """
        while not self.closing.is_set():
            for message in self.consumer.consume(CHUNK, 0.05):
                error = message.error()
                key = bytes(message.key() or b"").decode()
                value = message.value()
                if error:
                    is_end = error.code() == KafkaError._PARTITION_EOF
                    (self.unread.discard if is_end else self.unread.add)(message.partition() or 0)
                elif value is None:
                    self.rows.pop(key, None)
                else:
                    self.rows[key] = bytes(value).decode()

    def answer(self, key: str) -> dict[str, Any]:
        """Return the protocol's answer to a query."""
        return (
            {"type": "not_ready"} if self.unread else {"type": "value", "value": self.rows.get(key)}
        )

    def close(self) -> None:
        """Stop following."""
        self.closing.set()
        self.thread.join()
        self.consumer.close()
