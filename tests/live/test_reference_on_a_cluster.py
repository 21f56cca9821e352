"""The reference on a standalone cluster of this machine: a master and two workers, started as the README says."""

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

from streamgate.brokers import Broker, open_broker
from streamgate.brokers.jars import jar_set
from streamgate.brokers.node import free_ports
from streamgate.designs.reaper import RunScope
from streamgate.generators.envelope_pb2 import Envelope, Posting
from streamgate.history.reading import Reading
from streamgate.impl.spark import main

DEADLINE_S = 90.0
LOOK_S = 0.1
WAVE = 50  # entries
CENTS = 7
FOLDER = Path(main.__file__).parent
BINARIES = Path(sys.executable).parent


def wait(what: str, reached: Callable[[], bool]) -> None:
    """Look until it is so."""
    until = time.monotonic() + DEADLINE_S
    while not reached():
        assert time.monotonic() < until, what
        time.sleep(LOOK_S)


class Cluster:
    """The master's address, and the processes of its workers."""

    def __init__(self, run: RunScope, folder: Path) -> None:
        self.log, (port,) = folder / "cluster.log", free_ports(1)
        self.master = f"spark://127.0.0.1:{port}"
        self.environment = os.environ | run.environment
        self.environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        self.environment |= {"SPARK_WORKER_DIR": str(folder / "work")}
        self.processes = [self.spark_class("master.Master", "--port", str(port))]
        wait("the master leads", lambda: "I have been elected leader" in self.log.read_text())
        worker = ("worker.Worker", "--cores", "2", "--memory", "2g", self.master)
        self.workers = [self.spark_class(*worker) for _ in range(2)]
        self.processes += self.workers
        wait("two workers are registered", lambda: self.log.read_text().count("Registering worker") == 2)

    def spark_class(self, name: str, *options: str) -> subprocess.Popen[bytes]:
        """A part of the cluster, in a session of its own."""
        command = [BINARIES / "spark-class", f"org.apache.spark.deploy.{name}", "--webui-port", "0", *options]
        with self.log.open("ab") as log:
            return subprocess.Popen(command, env=self.environment, stderr=log, start_new_session=True)

    def submit(self, bootstrap: str, folder: Path) -> subprocess.Popen[bytes]:
        """The ledger by spark-submit, on all of the cluster."""
        jars = ",".join(map(str, jar_set(FOLDER / "jars")))
        cluster = ["--master", self.master, "--executor-cores", "1", "--total-executor-cores", "2"]
        command = [BINARIES / "spark-submit", *cluster, "--jars", jars, FOLDER / "main.py", "--mode", "exactly_once"]
        command += ["--bootstrap", bootstrap, "--checkpoint", folder / "kept"]
        return subprocess.Popen(command, env=self.environment, cwd=folder, start_new_session=True)


@pytest.fixture
def run() -> Iterator[RunScope]:
    """Whatever is started ends with the test."""
    with RunScope() as scope:
        yield scope


@pytest.fixture
def broker(run: RunScope, tmp_path: Path) -> Iterator[Broker]:
    """A broker for the test."""
    opened = open_broker("embedded", run=run, log_dir=tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def cluster(run: RunScope, tmp_path: Path) -> Iterator[Cluster]:
    """A cluster for the test."""
    made = Cluster(run, tmp_path)
    yield made
    for process in made.processes:
        process.kill()


def test_a_worker_and_the_driver_are_killed(broker: Broker, cluster: Cluster, tmp_path: Path) -> None:
    """The sums of all that was fed come out exactly, whoever of the cluster died in between."""
    reading = Reading(broker.bootstrap, broker.client)
    reading.create({"entries": 2, "balances": 2})
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    balances, position = list[int](), {0: 0, 1: 0}
    driver = cluster.submit(broker.bootstrap, tmp_path)

    def sums_up_to(waves: int) -> bool:
        assert driver.poll() is None, "the driver runs"
        found = reading.records("balances", position, committed=True)
        balances.extend(json.loads(message.value())["balance_cents"] for message in found)
        return waves * WAVE * CENTS in balances

    def feed() -> None:
        for _ in range(WAVE):
            entry = Envelope(postings=[Posting(account="a", amount_cents=CENTS)])
            producer.produce("entries", entry.SerializeToString(), b"branch")
        producer.flush()

    feed()
    wait("the first wave is summed", lambda: sums_up_to(1))
    cluster.workers[0].kill()
    feed()
    wait("the other worker goes on", lambda: sums_up_to(2))
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait(DEADLINE_S)
    feed()
    driver = cluster.submit(broker.bootstrap, tmp_path)
    wait("another driver goes on", lambda: sums_up_to(3))
    driver.send_signal(signal.SIGTERM)
    driver.wait(DEADLINE_S)

    assert balances == sorted(set(balances))
    reading.close()


def test_its_executors_are_killed(cluster: Cluster, tmp_path: Path) -> None:
    """The rows with workers are upheld on executors of a standalone cluster too."""
    manifest = (FOLDER / "design.toml").read_text(encoding="utf-8")
    submit = f"--master {cluster.master} --executor-cores 1 --total-executor-cores 2 pyspark-shell"
    folder = tmp_path / "design"
    folder.mkdir()
    (folder / "design.toml").write_text(f'{manifest}PYSPARK_SUBMIT_ARGS = "{submit}"\n', encoding="utf-8")
    command = [BINARIES / "streamgate", "run", "--design", folder, "--only", "@G28.loses-a-worker"]

    assert subprocess.run([*command, "--broker", "embedded", "--out", tmp_path / "out"], check=False).returncode == 0
