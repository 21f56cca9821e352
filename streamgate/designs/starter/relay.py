"""A relay: what is read is written. Begin at `transform`; everything else is there to keep the promises."""

from threading import Event
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer
from streamgate.adapter import Design, Failed, serve
from streamgate.generators.envelope_pb2 import Envelope, Hop


def transform(message: Any) -> bytes:
    """Append the position that the record was read from."""
    envelope = Envelope.FromString(message.value())
    envelope.chain.append(Hop(topic=message.topic(), partition=message.partition(), offset=message.offset()))
    return envelope.SerializeToString()


class Relay(Design):  # reads a batch, writes it, commits; in exactly_once all three are one transaction
    hello = {"name": "starter", "version": "0.1", "language": "python", "programs": ["relay"]}
    hello |= {"modes": ["at_least_once", "exactly_once"]}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        """Settle what a predecessor left, then join the group; ready once partitions are held."""
        app, session_ms = start["application_id"], start["session_timeout_ms"]
        client = {"bootstrap.servers": start["bootstrap"], "retry.backoff.ms": 20, **start["client"]}
        reads = {"group.id": app, "isolation.level": "read_committed", "enable.auto.commit": False}
        reads |= {"session.timeout.ms": session_ms, "heartbeat.interval.ms": session_ms // 4}
        writes = {"enable.idempotence": True, "on_delivery": lambda e, _: e and self.refused.append(e)}
        fences = {"transactional.id": app, "transaction.timeout.ms": start["transaction_timeout_ms"]}
        self.output, self.exactly_once = start["topics"]["output"], start.get("mode") == "exactly_once"
        self.interval_s, self.refused = int(start["parameters"].get("commit_interval_ms", 100)) / 1000, []
        self.producer = Producer(client | writes | (fences if self.exactly_once else {}))
        if self.exactly_once:  # the same id at every start: a successor fences its predecessor
            self.producer.init_transactions(30)
        self.consumer = Consumer(client | reads | {"auto.offset.reset": start["offset_reset"]})
        self.consumer.subscribe([start["topics"]["input"]])
        while not self.consumer.assignment():  # the harness's deadline bounds this wait
            self.batch = self.consumer.consume(1, 0.1)
        return {"consumer_group": app, "transactional_id_prefix": app}

    def run(self, stopping: Event) -> None:
        """Relay until told to stop; a rebalance finds no batch half done, for it happens in `consume`."""
        while not stopping.is_set():
            if batch := self.batch or self.consumer.consume(10_000, self.interval_s):
                self.relay([(transform(m), m.key(), m.headers() or [], m.timestamp()[1]) for m in batch])
            self.batch = []
        self.consumer.close()

    def relay(self, rows: list[tuple[Any, ...]]) -> None:
        """Write, then commit how far was read: in one transaction, or once every output is acknowledged."""
        offsets = [p for p in self.consumer.position(self.consumer.assignment()) if p.offset >= 0]
        try:
            if self.exactly_once:
                self.producer.begin_transaction()
            for value, key, headers, timestamp in rows:
                self.producer.produce(self.output, value, key, headers=headers, timestamp=timestamp)
            if self.exactly_once:
                self.producer.send_offsets_to_transaction(offsets, self.consumer.consumer_group_metadata())
                self.producer.commit_transaction(30)
            elif self.producer.flush() or self.refused:
                raise Failed("storage", f"an output was refused: {self.refused}")
            else:
                self.consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            try:
                if self.exactly_once:
                    self.producer.abort_transaction(10)
            except KafkaException as end:
                raise Failed("fenced" if end.args[0].fatal() else "storage", str(end)) from None
            raise Failed("storage", str(error)) from None


serve(Relay())
