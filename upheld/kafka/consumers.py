"""Consumers that read topics to their ends, and a pool of them."""

import threading
import time
from collections.abc import Callable, Iterable
from typing import Final, Protocol, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from upheld.errors import MachineProblem

READ_S: Final = 30.0
POLL_S: Final = 0.01
BATCH: Final = 5_000  # messages that a poll returns at most

Position = dict[int, int]  # partition -> next offset to read


class ReadMessage(Protocol):
    """A message that a consumer returned without an error, so that its place is known."""

    def topic(self) -> str:
        """Return the topic's name."""

    def partition(self) -> int:
        """Return the partition's number."""

    def offset(self) -> int:
        """Return the offset in the partition."""

    def timestamp(self) -> tuple[int, int]:
        """Return the kind of the timestamp, and the timestamp in milliseconds."""

    def key(self) -> bytes | None:
        """Return the key."""

    def value(self) -> bytes | None:
        """Return the value."""

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        """Return the headers as names and values."""


class _Placed(ReadMessage, Protocol):
    """A message, or the news that a partition has ended: a consumer places both."""

    def error(self) -> KafkaError | None: ...


class TopicConsumer:
    """A consumer that reads one topic after another, and the topics that it knows."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.topics = set[str]()

    def read(self, topic: str, position: Position) -> list[ReadMessage]:
        """Read a topic from this position to its end, and move the position on.

        Raises:
            MachineProblem: The end did not come in time.
            KafkaException: The broker reported an error.
        """
        consumer = self.consumer
        if topic not in self.topics:
            # A consumer that does not know an assigned topic takes a second to begin (measured).
            consumer.list_topics(topic, READ_S)
            self.topics.add(topic)
        consumer.assign([TopicPartition(topic, p, o) for p, o in position.items()])
        unread = set(position)
        messages: list[ReadMessage] = []
        deadline = time.monotonic() + READ_S
        while unread:
            if time.monotonic() > deadline:
                raise MachineProblem(f"{topic} could not be read to its end within {READ_S:g} s")
            for message in cast(list[_Placed], consumer.consume(BATCH, POLL_S)):
                error = message.error()
                partition = message.partition()
                if error is None:
                    messages.append(message)
                    position[partition] = message.offset() + 1
                elif error.code() == KafkaError._PARTITION_EOF:
                    position[partition] = max(position[partition], message.offset())
                    unread.discard(partition)
                else:
                    raise KafkaException(error)
        consumer.unassign()
        return messages


class ConsumerPool:
    """The consumers of one isolation level, which are kept.

    A new consumer takes longer to make than to read with. There are as many as there have been
    reads at once.
    """

    def __init__(self, make: Callable[[], Consumer]) -> None:
        self._make = make
        self._idle: list[TopicConsumer] = []
        self._lock = threading.Lock()

    def read(self, topic: str, position: Position) -> list[ReadMessage]:
        """Read a topic to its end, with a consumer that knows it if there is one.

        Otherwise any idle consumer reads it, or else a new one.
        """
        with self._lock:
            reader = next((each for each in self._idle if topic in each.topics), None)
            reader = reader or next(iter(self._idle), None)
            if reader:
                self._idle.remove(reader)
        reader = reader or TopicConsumer(self._make())
        try:
            messages = reader.read(topic, position)
        except BaseException:  # its next read could return anything
            reader.consumer.close()
            raise
        with self._lock:
            self._idle.append(reader)
        return messages

    def forget(self, topics: Iterable[str]) -> None:
        """Have topics looked up again before they are read.

        They are gone, or have more partitions.
        """
        with self._lock:
            for reader in self._idle:
                reader.topics -= set(topics)

    def close(self) -> None:
        """Close the consumers that are not reading."""
        with self._lock:
            while self._idle:
                self._idle.pop().consumer.close()
