"""Measure how late events leave at a steady rate, and the use of the cores.

    python bench/flush_latency.py       the reference, exactly_once, 2,000 events/s for 30 s
    python bench/flush_latency.py --design plain --seconds 10

An event waits from its append to the moment at which a read_committed reader has its batch. The
wait beyond the interval is the figure: the batch went late by as much. The use of the cores is
measured with nothing to do, and at the rate.
"""

import argparse
import json
import threading
import time
from typing import NamedTuple

import psutil
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from stage import PARTITIONS, staged

from upheld.brokers import Broker
from upheld.protocol.manifest import load
from upheld.supervisor.instance import Instance

TICK_S = 0.01


class Traffic(NamedTuple):
    """The events that arrive: how many a second, for how long, of how many customers."""

    rate: int
    seconds: float
    customers: int


def send(broker: Broker, topic: str, traffic: Traffic, appended: dict[str, float]) -> None:
    """Write events at a steady rate, and put down when each was acknowledged."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 1, **broker.client})

    def at(error: object, message: Message) -> None:
        assert error is None
        appended[json.loads(message.value() or b"")["visitorId"]] = time.monotonic()

    began = time.monotonic()
    number = 0
    while (elapsed := time.monotonic() - began) < traffic.seconds:
        while number < elapsed * traffic.rate:
            customer = number * 7919 % traffic.customers
            visit = {"customerId": str(customer), "visitorId": str(number), "action": "click"}
            place = customer % PARTITIONS
            producer.produce(
                topic, json.dumps(visit).encode(), b"%d" % customer, place, on_delivery=at
            )
            number += 1
        producer.poll(TICK_S)
    producer.flush()


def cpu_s(instance: Instance) -> float:
    """Return the CPU-seconds of all processes of an instance so far."""
    return sum(sum(psutil.Process(pid).cpu_times()[:4]) for pid in instance.pids())


def main() -> None:
    """Run one design and print four lines."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--design", default="spark")
    parser.add_argument("--mode", default="exactly_once")
    parser.add_argument("--rate", type=int, default=2_000)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--customers", type=int, default=200)
    parser.add_argument("--threshold", type=int, default=100)
    parser.add_argument("--interval-ms", type=int, default=1_000)
    options = parser.parse_args()
    manifest = load(options.design)
    parameters = {
        "commit_interval_ms": 100,
        "threshold": options.threshold,
        "interval_ms": options.interval_ms,
    }
    with staged(manifest, "batcher", options.mode, parameters) as stage:
        broker = stage.broker
        topics = stage.topics
        instance = stage.instance
        stage.start()
        began = time.monotonic()
        took = cpu_s(instance)
        time.sleep(options.seconds / 3)
        idle = (cpu_s(instance) - took) / (time.monotonic() - began)
        appended = dict[str, float]()
        seen = dict[str, float]()
        reader = Consumer(
            {"bootstrap.servers": broker.bootstrap, "group.id": "bench-reader", **broker.client}
            | {
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 10,
            }
        )
        reader.assign(
            [TopicPartition(topics["batches"], partition, 0) for partition in range(PARTITIONS)]
        )
        begins = time.monotonic()
        took = cpu_s(instance)
        traffic = Traffic(options.rate, options.seconds, options.customers)
        sender = threading.Thread(target=send, args=(broker, topics["visits"], traffic, appended))
        sender.start()
        until = begins + options.seconds + options.interval_ms / 1000 + 30
        while (sender.is_alive() or len(seen) < len(appended)) and time.monotonic() < until:
            for message in reader.consume(1_000, TICK_S):
                for event in json.loads(message.value() or b"")["events"]:
                    seen.setdefault(event["visitorId"], time.monotonic())
        busy = (cpu_s(instance) - took) / (time.monotonic() - begins)
        reader.close()
    if missing := len(appended) - len(seen):
        raise SystemExit(f"{missing} events never came out: no figure counts")
    waits = sorted(seen[event] - at for event, at in appended.items())
    warm = max(
        seen[event] - at for event, at in appended.items() if at > begins + options.seconds / 3
    )
    interval_s = options.interval_ms / 1000
    print(
        f"{manifest.name} {options.mode}: {len(waits):,} events at {options.rate:,} a second, all "
        "came out"
    )
    print(
        f"waited: median {waits[len(waits) // 2]:.2f} s, 99 % {waits[len(waits) * 99 // 100]:.2f} "
        f"s, at most {waits[-1]:.2f} s"
    )
    beyond = f"{waits[-1] - interval_s:.2f} s, {warm - interval_s:.2f} s after the first third"
    print(f"beyond the interval of {options.interval_ms} ms: at most {beyond}")
    print(f"cores: {idle:.2f} with nothing to do, {busy:.2f} at this rate")


if __name__ == "__main__":
    main()
