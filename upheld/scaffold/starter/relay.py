"""A relay. Begin at `transform`; the rest keeps the promises."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from time import monotonic
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from google.protobuf.message import DecodeError
from upheld.adapter import Design, Failed, serve
from upheld.generators.envelope_pb2 import Envelope, Hop

# The end of a partition for now, and a broker that the client looks for.
PASSING = {KafkaError._PARTITION_EOF, KafkaError._TRANSPORT}


def transform(message: Any) -> bytes:
    """Append a record's position. Without key, value or envelope the design stops."""
    hop = Hop(topic=message.topic(), partition=message.partition(), offset=message.offset())
    value: Any = None if message.key() is None else message.value()
    try:
        envelope = Envelope.FromString(value)
    except (DecodeError, TypeError) as error:
        at = f"{hop.topic}-{hop.partition}@{hop.offset}"
        raise Failed("poison", f"{at} cannot be read: {error!r}") from None
    envelope.chain.append(hop)
    return envelope.SerializeToString()


# It writes what it reads, and commits every interval; in exactly_once that is one transaction.
class Relay(Design):
    hello = {"name": "starter", "version": "0.1", "language": "python", "programs": ["relay"]}
    hello |= {"modes": ["at_least_once", "exactly_once"]}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        """Settle what a predecessor left, and join the group until partitions are held."""
        app = start["application_id"]
        session_ms = start["session_timeout_ms"]
        client = {"bootstrap.servers": start["bootstrap"], "retry.backoff.ms": 20}
        client |= start["client"]
        reads = {"group.id": app, "isolation.level": "read_committed", "enable.auto.commit": False}
        reads |= {"session.timeout.ms": session_ms, "heartbeat.interval.ms": session_ms // 4}
        reads["auto.offset.reset"] = start["offset_reset"]
        reads["enable.partition.eof"] = True  # the end may be markers
        writes: dict[str, Any] = {"enable.idempotence": True}
        writes["on_delivery"] = lambda error, _: error and self.refused.append(error)
        # With two under way, a broker may take the second for the first, if that was refused.
        writes["max.in.flight.requests.per.connection"] = 1
        self.exactly_once = start.get("mode") == "exactly_once"
        if self.exactly_once:
            writes["transactional.id"] = app
            writes["transaction.timeout.ms"] = start["transaction_timeout_ms"]
        else:
            writes["socket.timeout.ms"] = 10_000
        self.output = start["topics"]["output"]
        self.interval_s = int(start["parameters"].get("commit_interval_ms", 100)) / 1000
        self.due = 0.0
        self.offsets, self.settled, self.refused, self.in_transaction = [], {}, [], False
        self.producer = Producer(client | writes)
        if self.exactly_once:  # the same id at every start: a successor fences its predecessor
            self.producer.init_transactions(30)
        self.consumer = Consumer(client | reads)
        self.sender = ThreadPoolExecutor(1)
        calls = {"on_assign": self.look_for_a_gap, "on_revoke": self.commit}
        self.consumer.subscribe([start["topics"]["input"]], **calls)
        while not self.consumer.assignment():  # the harness's deadline bounds this wait
            self.first = self.consumer.consume(1, 0.1)
        return {"consumer_group": app, "transactional_id_prefix": app}

    def look_for_a_gap(self, consumer: Consumer, partitions: list[Any]) -> None:
        """Stop if committed offsets have been deleted: the client would skip the gap."""
        for place in consumer.committed(partitions, 10):
            if 0 <= place.offset < (first := consumer.get_watermark_offsets(place, 10)[0]):
                at = f"{place.topic}-{place.partition}@{place.offset}"
                raise Failed("offset-lost", f"{at} is not in the log, which begins at {first}")

    def run(self, stopping: Event) -> None:
        """Relay until told to stop. A failure aborts what is open, and says why."""
        try:
            self.relay(self.first)
            while not stopping.is_set():
                self.relay(self.consumer.consume(1_000, min(0.1, self.interval_s)))
            self.commit()
            self.consumer.close()
        except (KafkaException, TimeoutError, Failed) as error:
            try:
                if self.in_transaction:
                    self.producer.abort_transaction(10)
            except KafkaException as end:
                raise Failed("fenced" if end.args[0].fatal() else "storage", str(end)) from None
            raise error if isinstance(error, Failed) else Failed("storage", str(error)) from None

    def relay(self, batch: list[Any]) -> None:
        """Write a batch until it is acknowledged, and commit if it is time."""
        records = [message for message in batch if not message.error()]
        errors = [message.error() for message in batch if message.error()]
        self.refused += [error for error in errors if error.code() not in PASSING]
        if records:
            self.begin()
        for m in records:
            kept = {"headers": m.headers(), "timestamp": m.timestamp()[1]}
            self.producer.produce(self.output, transform(m), m.key(), **kept)
        if self.producer.flush() or self.refused:
            raise KafkaException(*self.refused)
        positions = self.consumer.position(self.consumer.assignment())
        self.offsets = [place for place in positions if place.offset >= 0]
        if monotonic() >= self.due:
            self.commit()
            self.due = monotonic() + self.interval_s

    def begin(self) -> None:
        """Open a transaction if the mode needs one and none is open."""
        if self.exactly_once and not self.in_transaction:
            self.producer.begin_transaction()
            self.in_transaction = True

    def commit(self, *_: Any) -> None:
        """Commit the positions that were read, if they are further than before."""
        reached = {place.partition: place.offset for place in self.offsets}
        if not reached or reached == self.settled:
            return
        self.begin()
        if self.exactly_once:
            group = self.consumer.consumer_group_metadata()
            send = self.producer.send_offsets_to_transaction
            # Bounded here: librdkafka 2.16 waits for ever for a lost coordinator (its issue 5456).
            self.sender.submit(send, self.offsets, group).result(10)
            self.producer.commit_transaction(30)
        else:
            self.consumer.commit(offsets=self.offsets, asynchronous=False)
        self.settled, self.in_transaction = reached, False


serve(Relay())
