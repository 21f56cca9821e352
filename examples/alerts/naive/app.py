"""The service with two outputs, whose alerts are sent at once by another producer.

Costs are in one transaction with the offsets that they came from, and alerts are in none: after a
crash they come again.
"""

import json
import os
import signal
import threading

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

BATCH = 500  # orders in a transaction at most
WAIT_S = 0.1
LARGE_CENTS = 1_400
SESSION_TIMEOUT_MS = int(os.environ["SESSION_TIMEOUT_MS"])


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
    alerter = Producer({"bootstrap.servers": os.environ["KAFKA"], "linger.ms": 0})
    consumer.subscribe([os.environ["ORDERS"]])
    committed = dict[int, int]()
    while not stopping.is_set():
        batch = consumer.consume(BATCH, WAIT_S)
        orders = [each for each in batch if not each.error()]
        read = offsets(batch)
        if not orders and read.items() <= committed.items():
            continue
        producer.begin_transaction()
        for message in orders:
            order = json.loads(message.value() or b"")
            cents = order["quantity"] * order["price_cents"]
            cost = json.dumps({"order": order["id"], "cost_cents": cents})
            producer.produce(os.environ["COSTS"], cost, message.key())
            if cents >= LARGE_CENTS:
                alerter.produce(os.environ["ALERTS"], f"large: {order['id']}", message.key())
        alerter.flush()
        places = [TopicPartition(os.environ["ORDERS"], *each) for each in read.items()]
        producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata())
        producer.commit_transaction()
        committed |= read
    consumer.close()


if __name__ == "__main__":
    main()
