"""Writing a workload: in order, by an idempotent producer, its aborted transactions in between by a
transactional one.
"""

from collections.abc import Sequence

from confluent_kafka import KafkaError, Message, Producer

from upheld.generators.ledger import Send

FLUSH_S = 30.0


class Feed:
    """The harness's producers on one broker.

    What they wrote is read back from the log: a model never folds what was sent.
    """

    def __init__(self, settings: dict[str, str | int | float | bool], run_id: str) -> None:
        # Back-to-back transactions wait in the client's backoff while the last one's markers are
        # written.
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
        """Write a workload to its topics, to that of `role` where a record names none;
        topic-partition -> the offset after the last record that is not aborted.

        Records with one transaction number are aborted together, when the next transaction begins
        or at the end. Their place among the others is about that of the workload, but the last ones
        end their partitions; whatever comes after the last ones lies behind an open transaction,
        and becomes visible all at once when that is aborted.
        """
        self._ends = {}
        ends_of = {
            (send.role, send.partition): number
            for number, send in enumerate(sends)
            if not send.aborted
        }
        heard = set(ends_of.values())
        last = max(
            (send.transaction for send in sends if send.transaction is not None), default=None
        )
        open_transaction: int | None = None
        for number, send in enumerate(sends):
            if send.transaction is not None and send.transaction != open_transaction:
                self._end(open_transaction)
                if send.transaction == last:
                    self._steady.flush(FLUSH_S)
                self._transactional().begin_transaction()
                open_transaction = send.transaction
            elif not send.aborted and last is not None and open_transaction == last:
                self._transactional().flush(FLUSH_S)  # which has nothing to do the second time
            producer = self._steady if send.transaction is None else self._transactional()
            self._produce(producer, topics[send.role or role], send, is_heard=number in heard)
        self._steady.flush(FLUSH_S)
        self._end(open_transaction)
        return self._ends

    def look_at(self, topic: str) -> None:
        """Hear how many partitions a topic has now."""
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
        """Hand a record to a producer; of one that ends its partition, the delivery is heard."""
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
            except BufferError:  # its queue is full: let deliveries make room
                producer.poll(0.1)
            else:
                return
