"""The reference by spark-submit, without the harness: on a Spark of this machine, and on a standalone cluster of a master and two
workers, which are started as the README says."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from streamgate.brokers import open_broker
from streamgate.brokers.jars import jar_set
from streamgate.brokers.node import free_ports
from streamgate.designs.reaper import RunScope
from streamgate.generators.envelope_pb2 import Envelope, Posting
from streamgate.history.reading import Reading
from streamgate.impl.spark import main

DEADLINE_S = 240.0
LOOK_S = 0.1
WAVE = 50  # entries
CENTS = 7
FOLDER = Path(main.__file__).parent
BINARIES = Path(sys.executable).parent
# Spark's scripts look for themselves by this Python; and none of these JVMs lives for long enough to be worth its compiler.
HERE = os.environ | {"PYSPARK_PYTHON": sys.executable, "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


def wait(what: str, reached: Callable[[], bool]) -> None:
    """Look until it is so."""
    until = time.monotonic() + DEADLINE_S
    while not reached():
        assert time.monotonic() < until, what
        time.sleep(LOOK_S)


class Ledger:
    """A broker with the ledger's topics, and a driver that reads and writes them."""

    def __init__(self, run: RunScope, folder: Path) -> None:
        self.folder, self.environment = folder, HERE | run.environment
        self.broker = open_broker("embedded", run=run, log_dir=folder)
        self.reading = Reading(self.broker.bootstrap, self.broker.client)
        self.reading.create({"entries": 2, "balances": 2})
        self.producer = Producer({"bootstrap.servers": self.broker.bootstrap})
        self.sums, self.position, self.waves = list[int](), {0: 0, 1: 0}, 0

    def submit(self, *options: str) -> None:
        """Start the driver, with what it kept."""
        jars = ",".join(map(str, jar_set(FOLDER / "jars")))
        command = [BINARIES / "spark-submit", *options, "--jars", jars, FOLDER / "main.py", "--mode", "exactly_once"]
        command += ["--bootstrap", self.broker.bootstrap, "--checkpoint", self.folder / "kept"]
        self.driver = subprocess.Popen(command, env=self.environment, cwd=self.folder, start_new_session=True)

    def feed(self) -> None:
        """Write a wave of entries."""
        for _ in range(WAVE):
            entry = Envelope(postings=[Posting(account="a", amount_cents=CENTS)])
            self.producer.produce("entries", entry.SerializeToString(), b"branch")
        self.producer.flush()
        self.waves += 1

    def is_summed(self) -> bool:
        """Whether all that was fed is in a visible sum."""
        assert self.driver.poll() is None, "the driver runs"
        found = self.reading.records("balances", self.position, committed=True)
        self.sums += [json.loads(message.value())["balance_cents"] for message in found]
        return self.waves * WAVE * CENTS in self.sums


@pytest.fixture
def run() -> Iterator[RunScope]:
    """Whatever is started ends with the test."""
    with RunScope() as scope:
        yield scope


@pytest.fixture
def ledger(run: RunScope, tmp_path: Path) -> Iterator[Ledger]:
    """One for the test."""
    made = Ledger(run, tmp_path)
    yield made
    made.reading.close()
    made.broker.close()


class Cluster:
    """The master's address, and the processes of its workers."""

    def __init__(self, run: RunScope, folder: Path) -> None:
        self.log, (port,) = folder / "cluster.log", free_ports(1)
        self.master = f"spark://127.0.0.1:{port}"
        self.environment = HERE | run.environment
        self.environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(folder / "work")}
        self.processes = [self.spark_class("master.Master", "--port", str(port))]
        wait("the master leads", lambda: "I have been elected leader" in self.log.read_text())
        worker = ("worker.Worker", "--cores", "2", "--memory", "2g", self.master)
        self.workers = [self.spark_class(*worker) for _ in range(2)]
        self.processes += self.workers
        wait("two workers are registered", lambda: self.log.read_text().count("Registering worker") == 2)
        self.options = ("--master", self.master, "--executor-cores", "1", "--total-executor-cores", "2")

    def spark_class(self, name: str, *options: str) -> subprocess.Popen[bytes]:
        """A part of the cluster, in a session of its own."""
        command = [BINARIES / "spark-class", f"org.apache.spark.deploy.{name}", "--webui-port", "0", *options]
        with self.log.open("ab") as log:
            return subprocess.Popen(command, env=self.environment, stderr=log, start_new_session=True)


@pytest.fixture
def cluster(run: RunScope, tmp_path: Path) -> Iterator[Cluster]:
    """One for the test."""
    made = Cluster(run, tmp_path)
    yield made
    for process in made.processes:
        process.kill()


def test_a_bootstrap_and_a_checkpoint_are_enough(ledger: Ledger) -> None:
    """What was in `entries` is summed in `balances`, and SIGTERM ends it."""
    ledger.feed()
    ledger.submit()
    wait("the wave is summed", ledger.is_summed)
    ledger.driver.send_signal(signal.SIGTERM)

    assert ledger.sums[-1] == WAVE * CENTS
    assert ledger.driver.wait(DEADLINE_S) == 128 + signal.SIGTERM


def test_a_worker_and_the_driver_are_killed(ledger: Ledger, cluster: Cluster) -> None:
    """The sums of all that was fed come out exactly, whoever of the cluster died in between."""
    ledger.submit(*cluster.options)
    ledger.feed()
    wait("the first wave is summed", ledger.is_summed)
    cluster.workers[0].kill()
    ledger.feed()
    wait("the other worker goes on", ledger.is_summed)
    os.killpg(ledger.driver.pid, signal.SIGKILL)
    ledger.driver.wait(DEADLINE_S)
    ledger.feed()
    ledger.submit(*cluster.options)
    wait("another driver goes on", ledger.is_summed)
    ledger.driver.send_signal(signal.SIGTERM)
    ledger.driver.wait(DEADLINE_S)

    assert ledger.sums == sorted(set(ledger.sums))


def test_its_executors_are_killed(cluster: Cluster, tmp_path: Path) -> None:
    """The rows with workers are upheld on executors of a standalone cluster too."""
    manifest = (FOLDER / "design.toml").read_text(encoding="utf-8")
    folder, submit = tmp_path / "design", " ".join((*cluster.options, "pyspark-shell"))
    folder.mkdir()
    (folder / "design.toml").write_text(f'{manifest}PYSPARK_SUBMIT_ARGS = "{submit}"\n', encoding="utf-8")
    command = [BINARIES / "streamgate", "run", "--design", folder, "--only", "@G28.loses-a-worker"]

    assert subprocess.run([*command, "--broker", "embedded", "--out", tmp_path / "out"], check=False).returncode == 0
