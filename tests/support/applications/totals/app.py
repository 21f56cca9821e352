"""A service that keeps what each account has spent, and says it once a batch.

Which totals it says hangs on where a batch ends. The last one of each account does not.
"""

import json
import os
import signal
import threading

from confluent_kafka import Consumer, Producer, TopicPartition

BATCH = 500  # orders in a transaction at most
WAIT_S = 0.1
KAFKA = os.environ["KAFKA"]
TOTALS = os.environ["TOTALS"]
SESSION_TIMEOUT_MS = int(os.environ["SESSION_TIMEOUT_MS"])


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
    consumer.subscribe([os.environ["ORDERS"]])
    while not stopping.is_set():
        orders = [each for each in consumer.consume(BATCH, WAIT_S) if not each.error()]
        if not orders:
            continue
        changed = dict[bytes, None]()
        for message in orders:
            order = json.loads(message.value())
            cents = order["quantity"] * order["price_cents"]
            totals[message.key()] = totals.get(message.key(), 0) + cents
            changed[message.key()] = None
        producer.begin_transaction()
        for account in changed:
            producer.produce(TOTALS, json.dumps({"total_cents": totals[account]}), account)
        read = [each for each in consumer.position(consumer.assignment()) if each.offset >= 0]
        producer.send_offsets_to_transaction(read, consumer.consumer_group_metadata())
        producer.commit_transaction()
    consumer.close()


if __name__ == "__main__":
    main()
