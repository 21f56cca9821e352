"""A service that writes what each order and each refund comes to.

It reads two topics in one group. Results of a batch are in one transaction with the offsets of both
of them. A failure ends the process, and its supervisor starts it again.
"""

import json
import os
import signal
import threading

from confluent_kafka import Consumer, Message, Producer, TopicPartition

BATCH = 500  # records in a transaction at most
WAIT_S = 0.1
SESSION_TIMEOUT_MS = int(os.environ["SESSION_TIMEOUT_MS"])
SIGNS = {os.environ["ORDERS"]: 1, os.environ["REFUNDS"]: -1}


def amount(message: Message) -> bytes:
    """Return what an order or a refund comes to."""
    read = json.loads(message.value() or b"")
    cents = SIGNS[message.topic()] * read["quantity"] * read["price_cents"]
    return json.dumps({"of": read["id"], "cents": cents}).encode()


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
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    producer = Producer(
        {
            "bootstrap.servers": os.environ["KAFKA"],
            "transactional.id": os.environ["TRANSACTIONAL_ID"],
            "transaction.timeout.ms": int(os.environ["TRANSACTION_TIMEOUT_MS"]),
        }
    )
    producer.init_transactions()
    consumer.subscribe(list(SIGNS))
    while not stopping.is_set():
        batch = [each for each in consumer.consume(BATCH, WAIT_S) if not each.error()]
        if not batch:
            continue
        producer.begin_transaction()
        for message in batch:
            producer.produce(os.environ["AMOUNTS"], amount(message), message.key())
        read = {(each.topic(), each.partition()): each.offset() + 1 for each in batch}
        places = [TopicPartition(*place, offset) for place, offset in read.items()]
        producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata())
        producer.commit_transaction()
    consumer.close()


if __name__ == "__main__":
    main()
