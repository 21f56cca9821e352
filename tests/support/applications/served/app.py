"""A service that keeps what each account has spent, and answers for it by HTTP.

It serves what is committed. Until its totals are read back, it says that it is not ready.
"""

import json
import os
import signal
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

from confluent_kafka import Consumer, Producer, TopicPartition

BATCH = 500  # orders that are read at once
WAIT_S = 0.05
KAFKA = os.environ["KAFKA"]
TOTALS = os.environ["TOTALS"]
SESSION_TIMEOUT_MS = int(os.environ["SESSION_TIMEOUT_MS"])
COMMIT_S = int(os.environ["COMMIT_INTERVAL_MS"]) / 1000


class Served:
    """The totals that are served; None until they are known."""

    totals: dict[bytes, int] | None = None


class Table(BaseHTTPRequestHandler):
    """The answers for accounts: `/totals/ACCOUNT`."""

    def do_GET(self) -> None:
        """Answer with the total, or say that there is none, or that it is not ready."""
        totals = Served.totals
        account = unquote(self.path.removeprefix("/totals/")).encode()
        if totals is None:
            self.send_error(503)
        elif account not in totals:
            self.send_error(404)
        else:
            body = json.dumps({"total_cents": totals[account]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_request(self, *_: object) -> None:
        """Say nothing of a request."""


def restored() -> dict[bytes, int]:
    """Return the committed totals in cents, by account."""
    consumer = Consumer(
        {
            "bootstrap.servers": KAFKA,
            "group.id": "never-joined",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    totals: dict[bytes, int] = {}
    try:
        numbers = consumer.list_topics(TOTALS).topics[TOTALS].partitions
        for number in numbers:
            place = TopicPartition(TOTALS, number, 0)
            _, end = consumer.get_watermark_offsets(place)
            consumer.assign([place])
            while end and consumer.position([place])[0].offset < end:
                for message in consumer.consume(BATCH, WAIT_S):
                    if not message.error():
                        totals[message.key()] = json.loads(message.value())["total_cents"]
    finally:
        consumer.close()
    return totals


def main() -> None:
    """Serve until SIGTERM."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Table)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    consumer = Consumer(
        {
            "bootstrap.servers": KAFKA,
            "group.id": os.environ["GROUP"],
            "session.timeout.ms": SESSION_TIMEOUT_MS,
            "heartbeat.interval.ms": SESSION_TIMEOUT_MS // 4,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    producer = Producer(
        {
            "bootstrap.servers": KAFKA,
            "transactional.id": os.environ["TRANSACTIONAL_ID"],
            "transaction.timeout.ms": int(os.environ["TRANSACTION_TIMEOUT_MS"]),
        }
    )
    producer.init_transactions()
    totals = restored()
    Served.totals = dict(totals)
    consumer.subscribe([os.environ["ORDERS"]])
    commit_at = 0.0  # when the open transaction ends; 0 if none is open
    while not stopping.is_set():
        orders = [each for each in consumer.consume(BATCH, WAIT_S) if not each.error()]
        if orders and not commit_at:
            producer.begin_transaction()
            commit_at = time.monotonic() + COMMIT_S
        for message in orders:
            account, order = message.key(), json.loads(message.value())
            cents = order["quantity"] * order["price_cents"]
            totals[account] = totals.get(account, 0) + cents
            said = {"total_cents": totals[account], "at": time.time()}
            producer.produce(TOTALS, json.dumps(said), account)
        if commit_at and time.monotonic() >= commit_at:
            read = [each for each in consumer.position(consumer.assignment()) if each.offset >= 0]
            producer.send_offsets_to_transaction(read, consumer.consumer_group_metadata())
            producer.commit_transaction()
            commit_at = 0.0
            Served.totals = dict(totals)
    consumer.close()


if __name__ == "__main__":
    main()
