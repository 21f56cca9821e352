"""Measure how fast a design catches up.

Waves of records wait in the input, and the clock runs until all are committed.

    python bench/catch_up.py      the reference's ledger, exactly_once, a million entries a wave
    python bench/catch_up.py --program holdings --entries 100000
    python bench/catch_up.py --design plain --mode at_least_once --entries 100000

The first wave includes the start of the query; before each later one the running design is held
until all is written. The outputs are checked at the end, so that no figure is one of a design which
lost something. Checked are balances, the number of events in full batches, and the last row of
every key. Figures of one run may be compared, figures of two machines may not.
"""

import argparse
import json
import random
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import accumulate
from typing import ClassVar, NamedTuple

import psutil
from confluent_kafka import Consumer, Producer, TopicPartition
from stage import PARTITIONS, staged

from upheld.brokers import Broker
from upheld.generators.envelope_pb2 import Envelope, Posting
from upheld.programs import PROGRAMS
from upheld.protocol.manifest import load

BRANCHES = 16
POSTINGS = 2
DEADLINE_S = 600


Outputs = list[tuple[bytes, bytes | None]]  # key, value


class Made(NamedTuple):
    """A record of a wave."""

    role: str
    key: bytes
    value: bytes | None
    partition: int


class Ledger:
    """Entries whose accounts follow Zipf's law.

    The sum of each account is kept for the check.
    """

    reads = ("entries",)
    writes = "balances"
    parameters: ClassVar[dict[str, int]] = {}

    def __init__(self, keys: int, seed: int) -> None:
        self.random = random.Random(seed)
        self.rows = [
            [f"account-{n:06}" for n in range(branch, keys, BRANCHES)] for branch in range(BRANCHES)
        ]
        self.weights = [
            list(accumulate(1 / (rank + 1) for rank in range(len(names)))) for names in self.rows
        ]
        self.sums: Counter[str] = Counter()

    def make(self, entries: int) -> Iterator[Made]:
        """Make the entries of a wave."""
        for number in range(entries):
            branch = number % BRANCHES
            names = self.random.choices(
                self.rows[branch], cum_weights=self.weights[branch], k=POSTINGS
            )
            postings = [
                Posting(account=name, amount_cents=self.random.randint(-50_000, 50_000))
                for name in names
            ]
            for posting in postings:
                self.sums[posting.account] += posting.amount_cents
            entry = Envelope(
                id=f"{number:09}", timestamp_ms=1_700_000_000_000 + number, postings=postings
            )
            value = entry.SerializeToString()
            yield Made("entries", b"branch-%d" % branch, value, branch % PARTITIONS)

    def wrong(self, outputs: Outputs) -> int:
        """Count the balances that are not the sums of the written entries."""
        found = {
            (row := json.loads(value or b""))["account"]: row["balance_cents"]
            for _, value in outputs
        }
        return sum(found.get(account) != cents for account, cents in self.sums.items())


class Batcher:
    """Events in batches of 100.

    The interval is so long that only full batches go.
    """

    reads = ("visits",)
    writes = "batches"
    parameters: ClassVar[dict[str, int]] = {"threshold": 100, "interval_ms": 3_600_000}

    def __init__(self, keys: int, seed: int) -> None:
        self.random = random.Random(seed)
        self.keys = keys
        self.counts = Counter[int]()

    def make(self, entries: int) -> Iterator[Made]:
        """Make the events of a wave."""
        for _ in range(entries):
            customer = self.random.randrange(self.keys)
            self.counts[customer] += 1
            visit = {
                "customerId": str(customer),
                "visitorId": f"{self.random.getrandbits(64):x}",
                "action": "click",
            }
            value = json.dumps(visit).encode()
            yield Made("visits", b"%d" % customer, value, customer % PARTITIONS)

    def wrong(self, outputs: Outputs) -> int:
        """Count the events of full batches that are missing or too many."""
        found = Counter[int]()
        for key, value in outputs:
            found[int(key)] += len(json.loads(value or b"")["events"])
        return sum(
            abs(found[customer] - count // 100 * 100) for customer, count in self.counts.items()
        )


class Positions:
    """Positions that come, change, move and go, and a tenth as many tickers."""

    writes = "joined"
    parameters: ClassVar[dict[str, int]] = {}

    def __init__(self, keys: int, seed: int, *, live: bool) -> None:
        self.random = random.Random(seed)
        self.keys = keys
        self.live = live
        self.reads = ("positions", "tickers")
        self.left: dict[int, int] = {}  # position -> ticker
        self.right: dict[int, str] = {}  # ticker -> name

    def make(self, entries: int) -> Iterator[Made]:
        """Make the changes of a wave.

        If the reference is live, every twentieth change is one of a ticker.
        """
        tickers = self.keys // 10
        for ticker in range(0 if self.right else tickers):
            yield self.ticker(ticker)
        for number in range(entries):
            if self.live and number % 20 == 0:
                yield self.ticker(self.random.randrange(tickers))
                continue
            position = self.random.randrange(self.keys)
            ticker = self.random.randrange(tickers)
            row = None
            key = b"%d" % position
            self.left.pop(position, None)
            if self.random.random() > 0.1:
                self.left[position] = ticker
                row = {
                    "positionId": key.decode(),
                    "client": "c",
                    "ticker": str(ticker),
                    "amount": number,
                }
            value = json.dumps(row).encode() if row else None
            yield Made("positions", key, value, position % PARTITIONS)

    def ticker(self, ticker: int) -> Made:
        """Change a ticker, and return its record."""
        self.right[ticker] = name = f"{self.random.getrandbits(32):x}"
        row = {"ticker": str(ticker), "exchange": "LON", "name": name, "founded": 1900}
        return Made("tickers", b"%d" % ticker, json.dumps(row).encode(), ticker % PARTITIONS)

    def wrong(self, outputs: Outputs) -> int:
        """Count the rows that are not the join of the last rows."""
        found = {
            int(key): json.loads(value)["right"]["name"]
            for key, value in dict(outputs).items()
            if value
        }
        due = {position: self.right[ticker] for position, ticker in self.left.items()}
        return sum(found.get(key) != due.get(key) for key in found.keys() | due.keys())


WORKLOADS = {
    "ledger": Ledger,
    "batcher": Batcher,
    "tickers": partial(Positions, live=False),
    "holdings": partial(Positions, live=True),
}


def produce(broker: Broker, topics: dict[str, str], made: Iterable[Made]) -> None:
    """Write the records of a wave, idempotently."""
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 20,
            **broker.client,
        }
        | {"queue.buffering.max.messages": 1_000_000, "compression.type": "lz4"}
    )
    for record in made:
        while True:
            try:
                producer.produce(topics[record.role], record.value, record.key, record.partition)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


def drain(broker: Broker, group: str, topics: list[str]) -> None:
    """Wait until the group has committed the end of every partition."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, **broker.client})
    places = [
        TopicPartition(topic, partition) for topic in topics for partition in range(PARTITIONS)
    ]
    ends = [consumer.get_watermark_offsets(place)[1] for place in places]
    until = time.monotonic() + DEADLINE_S
    while [place.offset for place in consumer.committed(places, 30)] != ends:
        if time.monotonic() > until:
            raise SystemExit(f"the input was not drained within {DEADLINE_S} s")
        time.sleep(0.01)
    consumer.close()


def visible(broker: Broker, topic: str) -> Outputs:
    """Return every committed output, key and value, in the order of its partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "bench-reader",
            "enable.partition.eof": True,
            **broker.client,
        }
        | {"isolation.level": "read_committed", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    found = Outputs()
    reading = set(range(PARTITIONS))
    while reading:
        for message in consumer.consume(10_000, 1):
            if message.error():
                reading.discard(message.partition())
            else:
                found.append((message.key() or b"", message.value()))
    consumer.close()
    return found


def main() -> None:
    """Run the waves and print one line each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--design", default="spark")
    parser.add_argument("--program", default="ledger", choices=WORKLOADS)
    parser.add_argument("--mode", default="exactly_once")
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--waves", type=int, default=3)
    parser.add_argument("--commit-interval-ms", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--keep-environment",
        action="store_true",
        help="that of design.toml, which is for short lives",
    )
    options = parser.parse_args()
    manifest = load(options.design)
    if not options.keep_environment:
        manifest = manifest.model_copy(update={"environment": {}})
    wave = WORKLOADS[options.program](options.keys, options.seed)
    rates = []
    group = ""
    parameters = {"commit_interval_ms": options.commit_interval_ms} | wave.parameters
    with staged(manifest, options.program, options.mode, parameters) as stage:
        broker = stage.broker
        topics = stage.topics
        instance = stage.instance
        print(f"{manifest.name} {options.mode}: boot {stage.boot_s:.1f} s", flush=True)
        for number in range(options.waves + 1):
            if number:
                instance.pause()
            produce(broker, topics, wave.make(options.entries))
            begun = time.monotonic()
            if number:
                instance.resume()
            else:
                group = stage.start()
            drain(broker, group, [topics[role] for role in PROGRAMS[options.program].commits])
            seconds = time.monotonic() - begun
            if number:
                rates.append(options.entries / seconds)
            memory = sum(psutil.Process(pid).memory_info().rss for pid in instance.pids()) >> 20
            print(
                f"wave {number}: {seconds:6.2f} s  {options.entries / seconds:9,.0f} records/s  "
                f"{memory} MiB",
                flush=True,
            )
        wrong = wave.wrong(visible(broker, topics[wave.writes]))
    if wrong:
        raise SystemExit(f"{wrong} outputs are wrong: no figure counts")
    print(
        f"median of the warm waves: {statistics.median(rates):,.0f} records/s; all that came out "
        "is right"
    )


if __name__ == "__main__":
    main()
