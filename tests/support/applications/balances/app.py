"""A service that keeps the balance of each account, from orders and refunds.

It reads two topics in one group, and keeps balances in memory. They are restored from its output,
whose last committed record of a key is its balance. Large amounts go to a second topic. All of a
batch is in one transaction with the offsets of both inputs. A failure ends the process, and its
supervisor starts it again.
"""

import json
import os
import signal
import threading

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

BATCH = 50  # records in a transaction at most
WAIT_S = 0.1
LARGE_CENTS = 1_400
SESSION_TIMEOUT_MS = int(os.environ["SESSION_TIMEOUT_MS"])
SIGNS = {os.environ["ORDERS"]: 1, os.environ["REFUNDS"]: -1}
COMMITTED = {
    "bootstrap.servers": os.environ["KAFKA"],
    "isolation.level": "read_committed",
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
}


def restored() -> dict[bytes, int]:
    """Return the balances that are committed."""
    reader = Consumer({**COMMITTED, "group.id": "none", "enable.partition.eof": True})
    topic = os.environ["BALANCES"]
    partitions = reader.list_topics(topic).topics[topic].partitions
    reader.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    balances = dict[bytes, int]()
    ends = set[int]()
    while len(ends) < len(partitions):
        for message in reader.consume(BATCH, WAIT_S):
            error = message.error()
            if error and error.code() == KafkaError._PARTITION_EOF:
                ends.add(message.partition())
            elif not error:
                balances[message.key()] = json.loads(message.value())["balance_cents"]
    reader.close()
    return balances


def apply(producer: Producer, balances: dict[bytes, int], message: Message) -> None:
    """Write the balance after an order or a refund, and the alert of a large one."""
    read = json.loads(message.value() or b"")
    cents = read["quantity"] * read["price_cents"]
    balances[message.key()] = balances.get(message.key(), 0) + SIGNS[message.topic()] * cents
    said = {"balance_cents": balances[message.key()], "after": read["id"]}
    producer.produce(os.environ["BALANCES"], json.dumps(said), message.key())
    if cents >= LARGE_CENTS:
        producer.produce(os.environ["ALERTS"], f"large: {read['id']}", message.key())


def main() -> None:
    """Serve until SIGTERM."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    consumer = Consumer(
        {
            **COMMITTED,
            "group.id": os.environ["GROUP"],
            "session.timeout.ms": SESSION_TIMEOUT_MS,
            "heartbeat.interval.ms": SESSION_TIMEOUT_MS // 4,
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
    balances = restored()
    consumer.subscribe(list(SIGNS))
    while not stopping.is_set():
        batch = [each for each in consumer.consume(BATCH, WAIT_S) if not each.error()]
        if not batch:
            continue
        producer.begin_transaction()
        for message in batch:
            apply(producer, balances, message)
        read = {(each.topic(), each.partition()): each.offset() + 1 for each in batch}
        places = [TopicPartition(*place, offset) for place, offset in read.items()]
        producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata())
        producer.commit_transaction()
    consumer.close()


if __name__ == "__main__":
    main()
