"""How fast a design's ledger catches up: waves of entries wait in the input, and the clock runs until all are committed.

    python bench/catch_up.py                                      the reference, exactly_once, a million entries a wave
    python bench/catch_up.py --design plain --mode at_least_once --entries 100000

The first wave includes the start of the query; before each later one the running design is held until all is written.
Balances are checked at the end, so that a figure is never that of a design which lost something. Figures of one run may be
compared, figures of two machines may not.
"""

import argparse
import json
import random
import statistics
import tempfile
import time
from collections import Counter
from itertools import accumulate
from pathlib import Path

import psutil
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from streamgate.brokers import Broker, open_broker
from streamgate.designs.instance import Instance
from streamgate.designs.manifest import load
from streamgate.designs.protocol import Ready, Start
from streamgate.designs.reaper import RunScope
from streamgate.generators.envelope_pb2 import Envelope, Posting

PARTITIONS, BRANCHES, POSTINGS = 4, 16, 2
DEADLINE_S = 600


class Wave:
    """Entries whose accounts follow Zipf's law; the sum of each account is kept for the check."""

    def __init__(self, accounts: int, seed: int) -> None:
        self.random = random.Random(seed)
        self.accounts = [[f"account-{n:06}" for n in range(branch, accounts, BRANCHES)] for branch in range(BRANCHES)]
        self.weights = [list(accumulate(1 / (rank + 1) for rank in range(len(names)))) for names in self.accounts]
        self.sums: Counter[str] = Counter()

    def produce(self, broker: Broker, topic: str, entries: int) -> None:
        """Write the entries, idempotently."""
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "linger.ms": 20, **broker.client}
            | {"queue.buffering.max.messages": 1_000_000, "compression.type": "lz4"}
        )
        for number in range(entries):
            branch = number % BRANCHES
            names = self.random.choices(self.accounts[branch], cum_weights=self.weights[branch], k=POSTINGS)
            postings = [Posting(account=name, amount_cents=self.random.randint(-50_000, 50_000)) for name in names]
            for posting in postings:
                self.sums[posting.account] += posting.amount_cents
            entry = Envelope(id=f"{number:09}", timestamp_ms=1_700_000_000_000 + number, postings=postings)
            key = b"branch-%d" % branch
            while True:
                try:
                    producer.produce(
                        topic, entry.SerializeToString(), key, branch % PARTITIONS, timestamp=entry.timestamp_ms
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.flush()


def drain(broker: Broker, group: str, topic: str) -> None:
    """Wait until the group has committed the end of every partition."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, **broker.client})
    places = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    ends = [consumer.get_watermark_offsets(place)[1] for place in places]
    until = time.monotonic() + DEADLINE_S
    while [place.offset for place in consumer.committed(places, 30)] != ends:
        if time.monotonic() > until:
            raise SystemExit(f"the input was not drained within {DEADLINE_S} s")
        time.sleep(0.01)
    consumer.close()


def balances(broker: Broker, topic: str) -> dict[str, int]:
    """The last committed balance of every account."""
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
    found, reading = {}, set(range(PARTITIONS))
    while reading:
        for message in consumer.consume(10_000, 1):
            if message.error():
                reading.discard(message.partition())
            else:
                row = json.loads(message.value())
                found[row["account"]] = row["balance_cents"]
    consumer.close()
    return found


def main() -> None:
    """Run the waves and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--design", default="spark")
    parser.add_argument("--mode", default="exactly_once")
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--accounts", type=int, default=10_000)
    parser.add_argument("--waves", type=int, default=3)
    parser.add_argument("--commit-interval-ms", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep-environment", action="store_true", help="that of design.toml, which is for short lives")
    options = parser.parse_args()
    manifest = load(options.design)
    if not options.keep_environment:
        manifest = manifest.model_copy(update={"environment": {}})
    with RunScope() as run, tempfile.TemporaryDirectory() as logs:
        broker = open_broker("embedded", run=run, log_dir=Path(logs))
        topics = {"entries": "bench-entries", "balances": "bench-balances"}
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, **broker.client})
        for created in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in topics.values()]).values():
            created.result()
        folders = {name: run.scratch / f"bench-{name}" for name in ("state", "durable")}
        for folder in folders.values():
            folder.mkdir()
        wave, rates = Wave(options.accounts, options.seed), []
        begun = time.monotonic()
        instance = Instance(manifest, run, Path(logs))
        instance.greet()
        print(f"{manifest.name} {options.mode}: boot {time.monotonic() - begun:.1f} s", flush=True)
        for number in range(options.waves + 1):
            if number:
                instance.pause()
            wave.produce(broker, topics["entries"], options.entries)
            begun = time.monotonic()
            if number:
                instance.resume()
            else:
                ready = instance.start(
                    Start(
                        program="ledger", application_id="bench", instance="a", mode=options.mode, topics=topics,
                        bootstrap=broker.bootstrap, client=broker.client, session_timeout_ms=6_000,
                        transaction_timeout_ms=60_000, state_dir=str(folders["state"]), durable_dir=str(folders["durable"]),
                        parameters={"commit_interval_ms": options.commit_interval_ms},
                    )
                )  # fmt: skip
                if not isinstance(ready, Ready):
                    raise SystemExit(f"{manifest.name} did not start: {ready}")
            drain(broker, ready.consumer_group or "", topics["entries"])
            seconds = time.monotonic() - begun
            if number:
                rates.append(options.entries / seconds)
            memory = sum(psutil.Process(pid).memory_info().rss for pid in instance.pids()) >> 20
            print(
                f"wave {number}: {seconds:6.2f} s  {options.entries / seconds:9,.0f} entries/s  {memory} MiB",
                flush=True,
            )
        found = balances(broker, topics["balances"])
        wrong = [account for account, cents in wave.sums.items() if found.get(account) != cents]
        instance.kill()
        broker.close()
        if wrong:
            raise SystemExit(f"{len(wrong)} balances are wrong: no figure counts")
        print(f"median of the warm waves: {statistics.median(rates):,.0f} entries/s; all balances right")


if __name__ == "__main__":
    main()
