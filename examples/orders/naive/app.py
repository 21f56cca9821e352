"""The order service, written without a thought of crashes.

Offsets are committed on a timer, and results are sent when the client likes.
"""

import json
import os
import signal
import threading
import time

from confluent_kafka import Consumer, Message, Producer

BATCH = 500
WAIT_S = 0.1
SESSION_TIMEOUT_MS = int(os.environ["SESSION_TIMEOUT_MS"])


def priced(message: Message) -> bytes:
    """Return what an order costs."""
    order = json.loads(message.value() or b"")
    cost_cents = order["quantity"] * order["price_cents"]
    return json.dumps({"order": order["id"], "cost_cents": cost_cents, "at": time.time()}).encode()


def main() -> None:
    """Serve until SIGTERM."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    consumer = Consumer(
        {
            "bootstrap.servers": os.environ["KAFKA"],
            "group.id": os.environ["GROUP"],
            "session.timeout.ms": SESSION_TIMEOUT_MS,
            "heartbeat.interval.ms": SESSION_TIMEOUT_MS // 4,
            "auto.commit.interval.ms": 200,
            "auto.offset.reset": "earliest",
        }
    )
    producer = Producer({"bootstrap.servers": os.environ["KAFKA"], "linger.ms": 1000})
    consumer.subscribe([os.environ["ORDERS"]])
    while not stopping.is_set():
        for order in consumer.consume(BATCH, WAIT_S):
            if not order.error():
                producer.produce(os.environ["COSTS"], priced(order), order.key())
        producer.poll(0)
    producer.flush()
    consumer.close()


if __name__ == "__main__":
    main()
