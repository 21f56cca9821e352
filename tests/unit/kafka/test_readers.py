"""Few consumers read topics, and each reads only topics that it has looked for."""

import threading
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from upheld.kafka.consumers import ConsumerPool

ENDS = {0: 2, 1: 0}  # partition -> how many records there are


class Log:
    """Every topic has the same records; what consumers do is written down."""

    def __init__(self) -> None:
        self.consumers = list[_Consumer]()
        self.is_broken = False
        self.barrier: threading.Barrier | None = None
        self.readers = ConsumerPool(self._new)

    def _new(self) -> Any:
        self.consumers.append(_Consumer(self))
        return self.consumers[-1]

    def read(self, topic: str) -> tuple[list[int], dict[int, int]]:
        """Read a topic from its beginning.

        Returns:
            The offsets of its records, and the position after them.
        """
        position = dict.fromkeys(ENDS, 0)
        return [message.offset() or 0 for message in self.readers.read(topic, position)], position


class _Consumer:
    def __init__(self, log: Log) -> None:
        self._log = log
        self._assigned = list[TopicPartition]()
        self.looked_for = list[str]()
        self.assigned = list[str]()
        self.is_closed = False

    def list_topics(self, topic: str, _: float) -> None:
        self.looked_for.append(topic)

    def assign(self, partitions: list[TopicPartition]) -> None:
        self._assigned = partitions
        self.assigned.append(partitions[0].topic)
        if self._log.barrier:
            self._log.barrier.wait(10)

    def unassign(self) -> None:
        self._assigned = []

    def consume(self, _: int, __: float) -> list[Any]:
        if self._log.is_broken:
            return [_Message(0, 0, KafkaError(KafkaError._ALL_BROKERS_DOWN))]
        found = list[Any]()
        for place in self._assigned:
            found += [
                _Message(place.partition, offset)
                for offset in range(place.offset, ENDS[place.partition])
            ]
            found.append(
                _Message(
                    place.partition, ENDS[place.partition], KafkaError(KafkaError._PARTITION_EOF)
                )
            )
        return found

    def close(self) -> None:
        self.is_closed = True


class _Message:
    def __init__(self, partition: int, offset: int, error: KafkaError | None = None) -> None:
        self._partition = partition
        self._offset = offset
        self._error = error

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._offset

    def error(self) -> KafkaError | None:
        return self._error


def test_one_after_the_other() -> None:
    """One consumer reads all topics to their ends.

    It looks for each of them once, before it is assigned the topic.
    """
    log = Log()

    for topic in ("first", "second", "first"):
        assert log.read(topic) == ([0, 1], {0: 2, 1: 0})
    (consumer,) = log.consumers
    assert (consumer.looked_for, consumer.assigned) == (
        ["first", "second"],
        ["first", "second", "first"],
    )


def test_at_once() -> None:
    """A reader at the same time has a consumer of its own.

    Each topic goes to the consumer that knows it afterwards.
    """
    log = Log()
    log.barrier = threading.Barrier(2)
    threads = [threading.Thread(target=log.read, args=(topic,)) for topic in ("first", "second")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.barrier = None

    for topic in ("first", "first", "second", "second", "first"):
        log.read(topic)
    assert sorted((c.looked_for, len(c.assigned)) for c in log.consumers) == [
        (["first"], 4),
        (["second"], 3),
    ]


def test_a_topic_that_is_another_one_is_looked_for_again() -> None:
    """It was made anew, or has more partitions than it had."""
    log = Log()
    log.read("topic")
    log.readers.forget(["topic", "another"])
    log.read("topic")

    assert log.consumers[0].looked_for == ["topic", "topic"]


def test_a_consumer_that_failed_reads_nothing_more() -> None:
    """Another one takes its place."""
    log = Log()
    log.read("topic")
    log.is_broken = True
    with pytest.raises(KafkaException):
        log.read("topic")
    log.is_broken = False

    assert log.read("topic") == ([0, 1], {0: 2, 1: 0})
    assert [consumer.is_closed for consumer in log.consumers] == [True, False]
    log.readers.close()
    assert all(consumer.is_closed for consumer in log.consumers)
