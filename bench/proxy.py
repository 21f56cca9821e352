"""Measure the costs of the proxy, by turns with and without it.

They are the round trip of a small request, and the throughput of a producer and of a consumer.

    python bench/proxy.py                  2,000 requests and 200 MB each way, three times
    python bench/proxy.py --mb 1000

Figures of one run may be compared, figures of two machines may not.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from upheld.brokers import Asked, open_broker
from upheld.injectors.proxy.proxy import Proxy
from upheld.kafka.connection import RawConnection
from upheld.kafka.reading import Reading
from upheld.supervisor.reaper import RunScope

TOPIC = "bench"
VALUE = b"x" * 1_000
REPEATS = 3


def round_trip_us(bootstrap: str, requests: int) -> float:
    """Return the median time of a fetch of nothing that waits for nothing, in us."""
    raw = RawConnection(bootstrap, {})
    took = list[float]()
    for _ in range(requests):
        began = time.perf_counter()
        raw.fetch("empty", {0: 0}, 1)
        took.append(time.perf_counter() - began)
    raw.close()
    return 1e6 * statistics.median(took)


def write_mb_s(bootstrap: str, mb: int) -> float:
    """Return the megabytes a second that a producer gets acknowledged."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "queue.buffering.max.messages": 1_000_000, "linger.ms": 20}
    )
    began = time.perf_counter()
    for _ in range(mb * 1_000):
        while True:
            try:
                producer.produce(TOPIC, VALUE)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()
    return mb / (time.perf_counter() - began)


def read_mb_s(bootstrap: str, mb: int) -> float:
    """Return the megabytes a second that a consumer reads from the beginning."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench"})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    began = time.perf_counter()
    unread = mb * 1_000
    while unread > 0:
        unread -= len(consumer.consume(10_000, 1))
    consumer.close()
    return mb / (time.perf_counter() - began)


def main() -> None:
    """Measure each way in turn, and print a line for it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=2_000)
    parser.add_argument("--mb", type=int, default=200)
    said = parser.parse_args()
    with RunScope() as run, tempfile.TemporaryDirectory() as folder:
        broker = open_broker(Asked("embedded"), run=run, log_dir=Path(folder))
        reading = Reading(broker.bootstrap, broker.client)
        reading.create({TOPIC: 1, "empty": 1})
        proxy = Proxy(broker.bootstrap)
        ways = {"direct": broker.bootstrap, "proxy": proxy.door("bench")}
        for _ in range(REPEATS):
            for name, bootstrap in ways.items():
                trip_us = round_trip_us(bootstrap, said.requests)
                written = write_mb_s(bootstrap, said.mb)
                read = read_mb_s(bootstrap, said.mb)
                print(
                    f"{name:6}  round trip {trip_us:5.0f} us  produce {written:5.0f} MB/s  "
                    f"consume {read:5.0f} MB/s"
                )
        proxy.close()
        reading.close()
        broker.close()


if __name__ == "__main__":
    main()
