"""The reference by spark-submit, without the harness, as a ledger."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Producer

from upheld.brokers import Broker
from upheld.brokers.jars import jar_set
from upheld.generators.envelope_pb2 import Envelope, Posting
from upheld.impl.spark import main
from upheld.kafka.reading import Reading
from upheld.supervisor.reaper import RunScope

DEADLINE_S = 240.0
LOOK_S = 0.1
WAVE = 50  # entries
CENTS = 7
FOLDER = Path(main.__file__).parent
BINARIES = Path(sys.executable).parent
# Spark's scripts look for themselves by this Python; and none of these JVMs lives for long enough
# to be worth its compiler.
HERE = os.environ | {
    "PYSPARK_PYTHON": sys.executable,
    "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def wait(what: str, reached: Callable[[], bool]) -> None:
    """Look until it is so."""
    until = time.monotonic() + DEADLINE_S
    while not reached():
        assert time.monotonic() < until, what
        time.sleep(LOOK_S)


class Ledger:
    """A broker with the ledger's topics, and a driver that reads and writes them.

    With a name, the topics and the driver have names of their own.
    """

    driver: "subprocess.Popen[bytes]"

    def __init__(self, broker: Broker, run: RunScope, folder: Path, name: str = "") -> None:
        self.broker = broker
        self.folder = folder
        self.environment = HERE | run.environment
        self.reading = Reading(broker.bootstrap, broker.client)
        self.entries = f"{name}entries"
        self.balances = f"{name}balances"
        self.names = (
            ["--application-id", name, "--reads", self.entries, "--writes", self.balances]
            if name
            else []
        )
        self.reading.create({self.entries: 2, self.balances: 2})
        self.producer = Producer({"bootstrap.servers": broker.bootstrap})
        self.sums = list[int]()
        self.position = {0: 0, 1: 0}
        self.waves = 0

    def submit(self, *options: str) -> None:
        """Start the driver, with what it kept."""
        jars = ",".join(map(str, jar_set(FOLDER / "jars")))
        command = [
            BINARIES / "spark-submit",
            *options,
            "--jars",
            jars,
            FOLDER / "main.py",
            "--mode",
            "exactly_once",
        ]
        command += [
            "--bootstrap",
            self.broker.bootstrap,
            "--checkpoint",
            self.folder / "kept",
            *self.names,
        ]
        self.driver = subprocess.Popen(
            command, env=self.environment, cwd=self.folder, start_new_session=True
        )

    def feed(self) -> None:
        """Write a wave of entries."""
        for _ in range(WAVE):
            entry = Envelope(postings=[Posting(account="a", amount_cents=CENTS)])
            self.producer.produce(self.entries, entry.SerializeToString(), b"branch")
        self.producer.flush()
        self.waves += 1

    def is_summed(self) -> bool:
        """Return whether all that was fed is in a visible sum."""
        assert self.driver.poll() is None, "the driver runs"
        found = self.reading.records(self.balances, self.position, committed=True)
        self.sums += [json.loads(message.value())["balance_cents"] for message in found]
        return self.waves * WAVE * CENTS in self.sums
