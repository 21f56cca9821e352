"""The fee service, written without a thought of crashes.

Offsets are committed on a timer, and fees are sent when the client likes.
"""

import configparser
import json
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from confluent_kafka import Consumer, Message, Producer

BATCH = 500
WAIT_S = 0.1
stopping = threading.Event()
assigned = threading.Event()


class Health(BaseHTTPRequestHandler):
    """Answers 200 at /ready when the service has partitions, and 503 before."""

    def do_GET(self) -> None:
        """Answer the probe of the platform."""
        is_ready = self.path == "/ready" and assigned.is_set()
        self.send_response(200 if is_ready else 503)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Keep the probes out of the log."""


def fee(message: Message) -> bytes:
    """Return the fee for a payment: one in a hundred, and 30 cents."""
    payment = json.loads(message.value() or b"")
    fee_cents = payment["amount_cents"] // 100 + 30
    return json.dumps({"payment": payment["id"], "fee_cents": fee_cents}).encode()


def main() -> None:
    """Serve until SIGTERM."""
    settings = configparser.ConfigParser()
    settings.read(sys.argv[1])
    kafka = settings["kafka"]
    health = HTTPServer(("127.0.0.1", settings.getint("http", "port")), Health)
    threading.Thread(target=health.serve_forever, daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    common = {"bootstrap.servers": kafka["brokers"], "client.id": os.environ["HOSTNAME"]}
    consumer = Consumer(
        common
        | {
            "group.id": "fees",
            "auto.commit.interval.ms": 200,
            "auto.offset.reset": "earliest",
        }
    )
    producer = Producer(common | {"linger.ms": 1000})
    consumer.subscribe(["payments.received"], on_assign=lambda *_: assigned.set())
    while not stopping.is_set():
        for payment in consumer.consume(BATCH, WAIT_S):
            if not payment.error():
                producer.produce("payments.fees", fee(payment), payment.key())
        producer.poll(0)
    producer.flush()
    consumer.close()


if __name__ == "__main__":
    main()
