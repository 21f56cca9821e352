"""Measure how much a restore reads, and how long it takes.

A changelog in one segment is compared with one in segments of a second.

    python bench/restore.py                       plain's ledger, 400,000 rows of 1,000 accounts
    python bench/restore.py --rows 1000000

Both are compacted, which Kafka does to closed segments alone. The design reads its balances back
before it is ready; the time with nothing to read back is measured too. Figures of one run may be
compared, figures of two machines may not.
"""

import argparse
import json
import time

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from stage import PARTITIONS, Stage, staged

from upheld.generators.envelope_pb2 import Envelope, Hop
from upheld.protocol.manifest import load

COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
SEGMENTS = {  # whether anything is written, and the topic's settings
    "nothing to read": (0, COMPACTED),
    "one segment": (1, COMPACTED),
    "segments of 1 s": (1, COMPACTED | {"segment.ms": "1000"}),
}
CLOSED_S = 1.5
CLEANED_S = 30.0
LOOK_S = 1.0


def write(stage: Stage, rows: int, accounts: int) -> None:
    """Write states of accounts, as the ledger does."""
    topic = stage.topics["balances"]
    entries = stage.topics["entries"]
    producer = Producer(
        {"bootstrap.servers": stage.broker.bootstrap, "queue.buffering.max.messages": 1_000_000}
    )
    for number in range(rows):
        place = number % PARTITIONS
        account = f"account-{number % accounts:06}"
        applied = {"topic": entries, "partition": place, "offset": number}
        row = {
            "account": account,
            "balance_cents": number,
            "postings": number // accounts + 1,
            "applied": applied,
        }
        chain = Envelope(
            chain=[Hop(topic=entries, partition=place, offset=number)]
        ).SerializeToString()
        producer.produce(
            topic, json.dumps(row).encode(), account.encode(), place, headers={"chain": chain}
        )
        producer.poll(0)
    producer.flush()


def left(stage: Stage) -> tuple[int, int]:
    """Return the number of rows in the table, and their bytes."""
    reading = {"group.id": "bench", "enable.partition.eof": True, "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": stage.broker.bootstrap, **reading})
    consumer.assign(
        [TopicPartition(stage.topics["balances"], place, 0) for place in range(PARTITIONS)]
    )
    unread = PARTITIONS
    rows = 0
    size_bytes = 0
    while unread:
        for message in consumer.consume(10_000, LOOK_S):
            if error := message.error():
                assert error.code() == KafkaError._PARTITION_EOF, error
                unread -= 1
            else:
                rows += 1
                size_bytes += len(message.key() or b"") + len(message.value() or b"")
    consumer.close()
    return rows, size_bytes


def main() -> None:
    """Measure each changelog, and print a line for it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--design", default="plain")
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--accounts", type=int, default=1_000)
    said = parser.parse_args()
    took_s = dict[str, float]()
    for name, (is_written, config) in SEGMENTS.items():
        with staged(
            load(said.design), "ledger", "at_least_once", {}, {"balances": config}
        ) as stage:
            write(stage, said.rows * is_written, said.accounts)
            time.sleep(CLOSED_S)
            # What is written now opens a segment anew.
            write(stage, said.accounts * is_written, said.accounts)
            until = time.monotonic() + CLEANED_S
            while (
                (now := left(stage))[0] > 3 * said.accounts
                and "1 s" in name
                and time.monotonic() < until
            ):
                time.sleep(LOOK_S)
            began = time.monotonic()
            stage.start()
            took_s[name] = time.monotonic() - began
        print(
            f"{name:16} {now[0]:>9,} rows {now[1] / 1e6:7.1f} MB   ready after "
            f"{took_s[name]:5.2f} s",
            flush=True,
        )
    none_s, one_s, small_s = took_s.values()
    print(
        f"reading back took {one_s - none_s:.2f} s from one segment and {small_s - none_s:.2f} s "
        "from small ones"
    )


if __name__ == "__main__":
    main()
