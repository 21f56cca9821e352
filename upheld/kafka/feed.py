"""The producers that write a workload, with aborted transactions in between.

An idempotent producer writes the committed records in their order, a transactional one the others.
"""

from collections.abc import Sequence
from typing import Final

from confluent_kafka import KafkaError, Message, Producer

from upheld.generators.ledger import Send

FLUSH_S: Final = 30.0
ROOM_S: Final = 0.1


class Feed:
    """The harness's producers on one broker.

    Their records are read back from the log: a model never folds what was sent.
    """

    def __init__(self, settings: dict[str, str | int | float | bool], run_id: str) -> None:
        # A transaction that follows at once waits in the client's backoff until the markers of the
        # last one are written.
        quick = {
            "retry.backoff.ms": 5,
            "retry.backoff.max.ms": 10,
            "topic.metadata.refresh.fast.interval.ms": 10,
        }
        self._settings = (
            settings
            | quick
            | {
                "partitioner": "murmur2_random",
                "enable.idempotence": True,
                "linger.ms": 50,
            }
        )
        self._id = f"upheld-feed-{run_id}"
        self._steady = Producer(self._settings)
        self._ends: dict[str, int] = {}
        self._aborting: Producer | None = None

    def write(self, topics: dict[str, str], role: str, sends: Sequence[Send]) -> dict[str, int]:
        """Write a workload, and return where its committed records end.

        A record goes to the topic of its role, or to that of `role` if it names none. Records with
        one transaction number are aborted together, when the next transaction begins or at the end.
        Their place among the others is about that of the workload, but the last ones end their
        partitions. Records that come after the last ones lie behind an open transaction. They
        become visible all at once when it is aborted.

        Returns:
            Topic-partition to the offset after its last record that is not aborted.
        """
        self._ends = {}
        last = max(
            (send.transaction for send in sends if send.transaction is not None), default=None
        )
        heard = _ends_of(sends)
        open_transaction: int | None = None
        for number, send in enumerate(sends):
            transaction = send.transaction
            if transaction is None:
                if open_transaction is not None and open_transaction == last:
                    # The second time nothing is left to flush.
                    self._transactional().flush(FLUSH_S)
            elif transaction != open_transaction:
                self._end(open_transaction)
                if transaction == last:
                    self._steady.flush(FLUSH_S)
                self._transactional().begin_transaction()
                open_transaction = transaction
            producer = self._steady if transaction is None else self._transactional()
            self._produce(producer, topics[send.role or role], send, is_heard=number in heard)
        self._steady.flush(FLUSH_S)
        self._end(open_transaction)
        return self._ends

    def look_at(self, topic: str) -> None:
        """Have the producers ask how many partitions a topic has now."""
        for producer in filter(None, (self._steady, self._aborting)):
            producer.list_topics(topic, FLUSH_S)

    def _acknowledged(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self._ends[f"{message.topic()}-{message.partition()}"] = 1 + (message.offset() or 0)

    def _end(self, transaction: int | None) -> None:
        if transaction is not None:
            self._transactional().flush(FLUSH_S)
            self._transactional().abort_transaction(FLUSH_S)

    def _transactional(self) -> Producer:
        if self._aborting is None:
            self._aborting = Producer(self._settings | {"transactional.id": self._id})
            self._aborting.init_transactions(FLUSH_S)
        return self._aborting

    def _produce(self, producer: Producer, topic: str, send: Send, *, is_heard: bool) -> None:
        """Hand a record to a producer; report its delivery if it ends its partition."""
        while True:
            try:
                producer.produce(
                    topic,
                    send.value,
                    send.key,
                    send.partition,
                    timestamp=send.timestamp_ms,
                    headers=list(send.headers),
                    on_delivery=self._acknowledged if is_heard else None,
                )
            except BufferError:  # the queue is full: deliveries make room
                producer.poll(ROOM_S)
            else:
                return


def _ends_of(sends: Sequence[Send]) -> set[int]:
    """Return the numbers of the records that end a partition, aborted ones aside."""
    ends: dict[tuple[str, int], int] = {}
    for number, send in enumerate(sends):
        if send.transaction is None:
            ends[send.role, send.partition] = number
    return set(ends.values())
