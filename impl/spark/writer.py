"""The one producer of the reference: for outputs and input offsets of a batch.

They go in one transaction, or one after the other. The producer lives in the driver and not in the
tasks, so it is all that has to be fenced. A successor takes its transactional id over with
`init_transactions`.

The offsets carry a token as their metadata: which checkpoint they belong to. A restart may find
them ahead of the checkpoint. The token then tells a batch that is out from a checkpoint that is not
theirs.
"""

import contextlib
import json
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from upheld.adapter import Failed
from upheld.impl.common.clients import ONE_IN_FLIGHT, failure_of, with_timeout
from upheld.impl.common.effects import Effects
from upheld.impl.spark.checkpoint import Positions

BROKER_DEADLINE_S = 30
OFFSETS_S = 10
HEAR_EVERY = 100  # records; a refusal is heard of between them
FENCED = {
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.INVALID_PRODUCER_ID_MAPPING,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


# Which query and which batch offsets belong to.
Token = dict[str, str | int | None]


class Writer:
    """A producer, and a consumer that never subscribes.

    The consumer stands for the group whose offsets are committed.
    """

    def __init__(self, start: dict[str, Any], role: str) -> None:
        self.topics = start["topics"]
        self.topic = start["topics"][role]
        self.group = f"{start['application_id']}-group"
        self.exactly_once = start["mode"] == "exactly_once"
        self.refused: KafkaError | None = None
        self.effects = Effects(start)
        again = {"retry.backoff.ms": 20, "reconnect.backoff.max.ms": 1_000}
        self.client = {"bootstrap.servers": start["bootstrap"], **again, **start["client"]}
        settings = {
            "partitioner": "murmur2_random",  # where Kafka's Java clients put a key
            "enable.idempotence": True,
            **ONE_IN_FLIGHT,
            "linger.ms": 5,
            "queue.buffering.max.messages": 1_000_000,
            "compression.type": "lz4",
            "delivery.report.only.error": True,
            "on_delivery": self._delivered,
        }
        if self.exactly_once:
            settings["transactional.id"] = f"{start['application_id']}-writer"
            settings["transaction.timeout.ms"] = start["transaction_timeout_ms"]
            # Where all brokers are away it would forget them, and the group's coordinator is waited
            # for by their old names.
            settings["metadata.recovery.strategy"] = "none"
        else:
            settings["socket.timeout.ms"] = (
                10_000  # a silent connection is given up well before a flush is
            )
        self.producer = Producer(self.client | settings)
        self.offsets = Consumer(self.client | {"group.id": self.group, "enable.auto.commit": False})

    def fence(self) -> None:
        """Take the transactional id over, and settle the transaction that was left open."""
        try:
            if self.exactly_once:
                # Once connected, it finds its coordinator at once.
                self.producer.list_topics(self.topic, BROKER_DEADLINE_S)
                self.producer.init_transactions(BROKER_DEADLINE_S)
        except KafkaException as error:
            why = error.args[0]
            said = f"Kafka grants no transactional id: {why}"
            raise failure_of(why, self.topic, said) from error

    def committed(self, topics: list[str]) -> tuple[Positions, Token]:
        """Return the group's offsets in these topics, and the token beside them."""
        known = [
            self.offsets.list_topics(topic, BROKER_DEADLINE_S).topics[topic] for topic in topics
        ]
        self.places = [
            TopicPartition(topic.topic, partition)
            for topic in known
            for partition in topic.partitions
        ]
        found = self.offsets.committed(self.places, BROKER_DEADLINE_S)
        found = [p for p in found if p.offset >= 0]
        tokens = [json.loads(p.metadata) for p in found if p.metadata]
        return {(p.topic, p.partition): p.offset for p in found}, tokens[0] if tokens else {}

    def write(self, rows: pa.Table | None, ends: Positions, token: Token) -> None:
        """Send a batch, and under exactly_once its offsets with it.

        The offsets go also if the batch has no rows: to commit is to own. If the client itself has
        let go of the connection of a transaction, the transaction is aborted, and sent once more.
        """
        for is_last in (False, True):
            try:
                self._write(rows, ends, token)
                break
            except KafkaException as error:
                if is_last or self.refused or error.args[0].code() != KafkaError._DESTROY_BROKER:
                    raise self._failed(error.args[0]) from error
            with contextlib.suppress(KafkaException):  # then the next one does not begin
                self.producer.abort_transaction(BROKER_DEADLINE_S)
            self.refused = None  # that it was purged

    def _write(self, rows: pa.Table | None, ends: Positions, token: Token) -> None:
        if self.exactly_once:
            self.producer.begin_transaction()
        if rows:
            self._send(rows)
        if self.exactly_once:
            group = self.offsets.consumer_group_metadata()
            with_timeout(
                OFFSETS_S,
                self.producer.send_offsets_to_transaction,
                _partitions(ends, token),
                group,
                OFFSETS_S,
            )
            self.producer.commit_transaction(BROKER_DEADLINE_S)
        elif self.producer.flush(BROKER_DEADLINE_S) or self.refused:
            raise KafkaException(self.refused or KafkaError(KafkaError._TIMED_OUT))

    def commit(self, ends: Positions, token: Token) -> None:
        """Commit offsets alone."""
        if self.exactly_once:
            self.write(None, ends, token)
            return
        try:
            self.offsets.commit(offsets=_partitions(ends, token), asynchronous=False)
        except KafkaException as error:
            raise self._failed(error.args[0]) from error

    def _send(self, rows: pa.Table) -> None:
        columns = [column.to_pylist() for column in rows.columns]
        for number, (*role, key, value, headers, timestamp_ms) in enumerate(
            zip(*columns, strict=True)
        ):
            self.effects.report(key, value)
            pairs = [(header["key"], header["value"]) for header in headers] if headers else None
            # Several stages say whose a row is.
            topic = self.topics[role[0]] if role else self.topic
            while True:
                try:
                    self.producer.produce(topic, value, key, headers=pairs, timestamp=timestamp_ms)
                    break
                except BufferError:  # the queue is full: wait for room
                    self.producer.poll(0.1)
            if number % HEAR_EVERY == 0:
                self.producer.poll(0)
            if self.refused:  # the rest would be sent for nothing
                raise KafkaException(self.refused)

    def _failed(self, error: KafkaError) -> Failed:
        """Abort what is open, and return the failure.

        A fenced instance has nothing left to abort.
        """
        if error.code() in FENCED:
            return Failed("fenced", f"a successor has taken over: {error}")
        why = self.refused or error  # before the abort, which purges the rest
        if self.exactly_once:
            with contextlib.suppress(KafkaException):  # the broker aborts it at its timeout
                self.producer.abort_transaction(BROKER_DEADLINE_S)
        return failure_of(why, self.topic, f"Kafka refuses the batch: {why}")

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        self.refused = self.refused or error


def _partitions(ends: Positions, token: Token) -> list[TopicPartition]:
    metadata = json.dumps(token)
    return [
        TopicPartition(topic, partition, offset, metadata)
        for (topic, partition), offset in ends.items()
    ]
