"""Relay every record of `input` to `output` with librdkafka, and add a hop.

Begin at `Relay.step`. The client is confluent-kafka, whose wheel holds librdkafka.
"""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, NoReturn

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from google.protobuf.message import DecodeError

from upheld.adapter import Design, Failed, serve
from upheld.generators.envelope_pb2 import Envelope, Hop

BATCH = 1_000
ANSWER_S = 50
FENCED = {
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
}
# The group has moved on meanwhile: the records are read again, here or by another member.
REBALANCED = {
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.REBALANCE_IN_PROGRESS,
}


def transform(record: Any) -> bytes:
    """Append a record's position. Without key, value or envelope the design stops."""
    hop = Hop(topic=record.topic(), partition=record.partition(), offset=record.offset())
    try:
        envelope = Envelope.FromString(None if record.key() is None else record.value())
    except (DecodeError, TypeError) as error:
        at = f"{hop.topic}-{hop.partition}@{hop.offset}"
        raise Failed("poison", f"{at} cannot be read: {error!r}") from None
    envelope.chain.append(hop)
    return envelope.SerializeToString()


def stop_after(error: KafkaError) -> NoReturn:
    """Stop loudly after an error that the client does not get over."""
    raise Failed("fenced" if error.code() in FENCED else "storage", error.str())


class Relay(Design):
    """The relay: it writes what it reads, and commits each batch."""

    hello: ClassVar = {
        "name": "librdkafka",
        "version": "2.16.0",
        "language": "python",
        "programs": ["relay"],
        "modes": ["at_least_once", "exactly_once"],
    }

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        """Settle what a predecessor left, and join the group until partitions are held."""
        self.application_id = start["application_id"]
        self.exactly_once = start.get("mode") == "exactly_once"
        self.output = start["topics"]["output"]
        self.interval_s = int(start["parameters"].get("commit_interval_ms", 100)) / 1000
        self.batch = list[Any]()  # read, and not written yet
        self.refused = list[KafkaError]()  # why outputs were not taken
        self.is_held = False
        self.sender = ThreadPoolExecutor(1)
        try:
            self.connect(start)
        except KafkaException as error:
            stop_after(error.args[0])
        return {
            "consumer_group": self.application_id,
            "transactional_id_prefix": self.application_id,
        }

    def connect(self, start: dict[str, Any]) -> None:
        """Make the clients. The same transactional id at every start fences a predecessor."""
        session_ms = start["session_timeout_ms"]
        client = {"bootstrap.servers": start["bootstrap"], "retry.backoff.ms": 20}
        client |= start["client"]
        writes: dict[str, Any] = {
            "enable.idempotence": True,
            # A broker takes any sequence number as the first one of a producer. If the first batch
            # is refused while a second one is under way, the first one is lost.
            "max.in.flight.requests.per.connection": 1,
            "on_delivery": lambda error, _: error and self.refused.append(error),
        }
        if self.exactly_once:
            writes["transactional.id"] = self.application_id
            writes["transaction.timeout.ms"] = start["transaction_timeout_ms"]
        else:
            writes["socket.timeout.ms"] = 10_000  # a connection that is silent is given up
        self.producer = Producer(client | writes)
        if self.exactly_once:
            self.producer.init_transactions(30)
        reads = {
            "group.id": self.application_id,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": start["offset_reset"],
            "session.timeout.ms": session_ms,
            "heartbeat.interval.ms": session_ms // 4,
            "fetch.wait.max.ms": 100,
        }
        self.consumer = Consumer(client | reads)
        self.consumer.subscribe(
            [start["topics"]["input"]], on_assign=self.assigned, on_revoke=self.revoked
        )
        until = time.monotonic() + ANSWER_S
        while not self.is_held:
            if time.monotonic() > until:
                raise Failed("conflict", f"no partition was assigned within {ANSWER_S} s")
            self.step()

    def assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        """Let `open` answer."""
        self.is_held = bool(partitions)

    def revoked(self, *_: Any) -> None:
        """Drop what was read and is not written: the next owner reads it again."""
        self.batch.clear()

    def run(self, stopping: threading.Event) -> None:
        """Relay batch after batch until told to stop. A failure says why."""
        try:
            while not stopping.is_set():
                self.step()
            self.consumer.close()
        except KafkaException as error:
            stop_after(error.args[0])

    def step(self) -> None:
        """Write what has arrived within an interval, and commit its offsets."""
        self.read()
        if not self.batch:
            return
        records = list(self.batch)
        self.batch.clear()
        ends = {(each.topic(), each.partition()): each.offset() + 1 for each in records}
        offsets = [TopicPartition(*place, offset) for place, offset in ends.items()]
        if not self.exactly_once:
            self.write(records)
            self.commit(offsets)
            return
        self.producer.begin_transaction()
        try:
            self.write(records)
            self.send(offsets)
            self.producer.commit_transaction(30)
        except (Failed, TimeoutError, KafkaException) as error:
            self.abort(error)

    def read(self) -> None:
        """Wait for a record, and read on until a batch is full or no further one is there.

        Records are read one by one into `batch`, since a rebalance between two of them clears it.
        """
        message = self.consumer.poll(self.interval_s)
        while message is not None:
            error = message.error()
            # The coordinator is out of reach; the client asks again.
            if error and error.code() != KafkaError._TRANSPORT:
                raise KafkaException(error)
            if not error:
                self.batch.append(message)
            if len(self.batch) >= BATCH:
                return
            message = self.consumer.poll(0)

    def write(self, records: list[Any]) -> None:
        """Write records until each is acknowledged."""
        for record in records:
            self.producer.produce(
                self.output,
                transform(record),
                record.key(),
                headers=record.headers(),
                timestamp=record.timestamp()[1],
            )
        self.producer.flush()
        if self.refused:
            raise KafkaException(self.refused[0])

    def commit(self, offsets: list[TopicPartition]) -> None:
        """Commit offsets, unless the partitions have gone to another member."""
        try:
            self.consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() not in REBALANCED:
                raise

    def send(self, offsets: list[TopicPartition]) -> None:
        """Send offsets within the transaction.

        librdkafka 2.16 waits without end for a coordinator that it has lost (its issue 5456), so
        the wait is bounded here.
        """
        group = self.consumer.consumer_group_metadata()
        sending = self.sender.submit(self.producer.send_offsets_to_transaction, offsets, group)
        sending.result(30)

    def abort(self, error: Exception) -> NoReturn:
        """Abort the transaction, and stop loudly for the reason that ended it."""
        try:
            self.producer.abort_transaction(10)
        except KafkaException as end:
            stop_after(end.args[0])
        if isinstance(error, KafkaException):
            stop_after(error.args[0])
        raise error if isinstance(error, Failed) else Failed("storage", repr(error)) from None


serve(Relay())
