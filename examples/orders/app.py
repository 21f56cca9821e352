"""An order service: it reads orders, and writes what each of them costs.

Each batch of results is in one transaction with the offsets that it came from. Whatever fails ends
the process, and its supervisor starts it again.
"""

import json
import os
import signal
import threading
import time

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

BATCH = 500  # orders in a transaction at most
WAIT_S = 0.1
SESSION_TIMEOUT_MS = int(os.environ["SESSION_TIMEOUT_MS"])


def priced(message: Message) -> bytes:
    """Return what an order costs."""
    order = json.loads(message.value() or b"")
    cost_cents = order["quantity"] * order["price_cents"]
    return json.dumps({"order": order["id"], "cost_cents": cost_cents, "at": time.time()}).encode()


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
            "enable.partition.eof": True,
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
    consumer.subscribe([os.environ["ORDERS"]])
    committed = dict[int, int]()
    while not stopping.is_set():
        batch = consumer.consume(BATCH, WAIT_S)
        orders = [each for each in batch if not each.error()]
        read = offsets(batch)
        if not orders and read.items() <= committed.items():
            continue
        producer.begin_transaction()
        for order in orders:
            producer.produce(os.environ["COSTS"], priced(order), order.key())
        places = [TopicPartition(os.environ["ORDERS"], *each) for each in read.items()]
        producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata())
        producer.commit_transaction()
        committed |= read
    consumer.close()


if __name__ == "__main__":
    main()
