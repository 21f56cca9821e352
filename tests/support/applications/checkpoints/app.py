"""A service that writes what each order costs, and has no group.

It reads all partitions of its input. How far it is stands in a file, which is written when the
outputs of a batch are acknowledged.
"""

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Place

BATCH = 500
PRICING_S = 0.000_5  # a look at the price list
KAFKA = {"bootstrap.servers": os.environ["KAFKA"]}
CHECKPOINT = Path(os.environ["CHECKPOINT"])


def cost(order: dict[str, Any]) -> bytes:
    """Return what an order costs."""
    time.sleep(PRICING_S)
    total = order["quantity"] * order["price_cents"]
    return json.dumps({"id": order["id"], "total_cents": total}).encode()


def begin(consumer: Consumer) -> dict[int, int]:
    """Read all partitions from where the checkpoint is, and return it."""
    offsets: dict[int, int] = {}
    if CHECKPOINT.exists():
        offsets = {int(each): at for each, at in json.loads(CHECKPOINT.read_text()).items()}
    topic = os.environ["ORDERS"]
    partitions = consumer.list_topics(topic, 10).topics[topic].partitions
    consumer.assign(
        [Place(topic, each, offsets.get(each, OFFSET_BEGINNING)) for each in partitions]
    )
    return offsets


def keep(offsets: dict[int, int]) -> None:
    """Write the checkpoint, which is the old one or the new one after a death."""
    new = CHECKPOINT.with_suffix(".new")
    new.write_text(json.dumps(offsets))
    new.replace(CHECKPOINT)


def write(producer: Producer, batch: list[Message]) -> None:
    """Write the outputs of a batch, and wait until they are acknowledged."""
    failed: list[Any] = []

    def acknowledged(error: Any, _: Message) -> None:
        if error:
            failed.append(error)

    for order in batch:
        value = cost(json.loads(order.value() or b""))
        producer.produce(os.environ["COSTS"], value, order.key(), on_delivery=acknowledged)
        producer.poll(0)
    producer.flush()
    if failed:
        raise KafkaException(failed[0])


def main() -> None:
    """Serve until SIGTERM."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    producer = Producer({**KAFKA, "enable.idempotence": True})
    consumer = Consumer({**KAFKA, "group.id": "none", "enable.auto.commit": False})
    offsets = begin(consumer)
    print("reading", flush=True)
    while not stopping.is_set():
        batch = consumer.consume(BATCH, 0.05)
        for order in batch:
            if order.error():
                raise KafkaException(order.error())
        if batch:
            places = consumer.position(consumer.assignment())
            offsets |= {each.partition: each.offset for each in places if each.offset >= 0}
            write(producer, batch)
            keep(offsets)
    consumer.close()


if __name__ == "__main__":
    main()
