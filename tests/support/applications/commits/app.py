"""A service that tells of large orders.

A batch is committed once its outputs are on the broker.
"""

import json
import os
import signal
import threading

from confluent_kafka import Consumer, Producer

LARGE = 2  # pieces


def main() -> None:
    """Read orders until SIGTERM."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    consumer = Consumer(
        {
            "bootstrap.servers": os.environ["KAFKA"],
            "group.id": os.environ["GROUP"],
            "session.timeout.ms": int(os.environ["SESSION_TIMEOUT_MS"]),
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    producer = Producer({"bootstrap.servers": os.environ["KAFKA"], "acks": "all"})
    consumer.subscribe([os.environ["ORDERS"]])
    while not stopping.is_set():
        messages = [m for m in consumer.consume(500, timeout=0.1) if not m.error()]
        if not messages:
            continue
        for message in messages:
            order = json.loads(message.value())
            if order["quantity"] >= LARGE:
                alert = json.dumps({"large": order["id"]})
                producer.produce(os.environ["ALERTS"], alert.encode(), message.key())
        producer.flush()
        consumer.commit(asynchronous=False)
    consumer.close()


if __name__ == "__main__":
    main()
