"""A fee service, as it runs in production: its names and addresses are in a file of settings.

Each batch of fees is in one transaction with the offsets that it came from. The session of its
consumer and the timeout of its transactions are those of the client.
"""

import configparser
import json
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

BATCH = 500  # payments in a transaction at most
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


def offsets(batch: list[Message]) -> dict[int, int]:
    """Return up to where each partition is read: to its end, or behind a message."""
    read = dict[int, int]()
    for message in batch:
        error = message.error()
        if error is None:
            read[message.partition()] = message.offset() + 1
        elif error.code() == KafkaError._PARTITION_EOF:
            read[message.partition()] = message.offset()
    return read


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
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    producer = Producer(common | {"transactional.id": f"fees-{os.environ['HOSTNAME']}"})
    producer.init_transactions()
    consumer.subscribe(["payments.received"], on_assign=lambda *_: assigned.set())
    committed = dict[int, int]()
    while not stopping.is_set():
        batch = consumer.consume(BATCH, WAIT_S)
        payments = [each for each in batch if not each.error()]
        read = offsets(batch)
        if not payments and read.items() <= committed.items():
            continue
        producer.begin_transaction()
        for payment in payments:
            producer.produce("payments.fees", fee(payment), payment.key())
        places = [TopicPartition("payments.received", *each) for each in read.items()]
        producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata())
        producer.commit_transaction()
        committed |= read
    consumer.close()


if __name__ == "__main__":
    main()
