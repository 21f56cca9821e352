"""The reference on a standalone cluster of Spark's, as the README starts it.

The cluster is a master and two workers. It takes minutes, so `tox run -e executors` runs it, and
the default list does not.
"""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from submitted import BINARIES, DEADLINE_S, FOLDER, HERE, Ledger, wait

from upheld.brokers import Broker
from upheld.brokers.node import free_ports
from upheld.supervisor.reaper import RunScope


@pytest.fixture
def run() -> Iterator[RunScope]:
    """Yield a run scope whose processes end with the test."""
    with RunScope() as scope:
        yield scope


@pytest.fixture
def ledger(broker: Broker, run: RunScope, tmp_path: Path) -> Iterator[Ledger]:
    """Yield a ledger for the test."""
    made = Ledger(broker, run, tmp_path, name="cluster-")
    yield made
    made.reading.close()


class Cluster:
    """The master's address, and the processes of its workers."""

    def __init__(self, run: RunScope, folder: Path) -> None:
        self.log = folder / "cluster.log"
        (port,) = free_ports(1)
        self.master = f"spark://127.0.0.1:{port}"
        self.environment = HERE | run.environment
        self.environment |= {
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_WORKER_DIR": str(folder / "work"),
        }
        self.processes = [self.spark_class("master.Master", "--port", str(port))]
        wait("the master leads", lambda: "I have been elected leader" in self.log.read_text())
        worker = ("worker.Worker", "--cores", "2", "--memory", "2g", self.master)
        self.workers = [self.spark_class(*worker) for _ in range(2)]
        self.processes += self.workers
        wait(
            "two workers are registered",
            lambda: self.log.read_text().count("Registering worker") == 2,
        )
        self.options = (
            "--master",
            self.master,
            "--executor-cores",
            "1",
            "--total-executor-cores",
            "2",
        )

    def spark_class(self, name: str, *options: str) -> subprocess.Popen[bytes]:
        """Start a part of the cluster, in a session of its own."""
        command = [
            BINARIES / "spark-class",
            f"org.apache.spark.deploy.{name}",
            "--webui-port",
            "0",
            *options,
        ]
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command, env=self.environment, stderr=log, start_new_session=True
            )


@pytest.fixture
def cluster(run: RunScope, tmp_path: Path) -> Iterator[Cluster]:
    """Yield a cluster for the test."""
    made = Cluster(run, tmp_path)
    yield made
    for process in made.processes:
        process.kill()


def test_a_worker_and_the_driver_are_killed(ledger: Ledger, cluster: Cluster) -> None:
    """The sums of all entries come out exactly, whichever process of the cluster died."""
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
    folder = tmp_path / "design"
    submit = " ".join((*cluster.options, "pyspark-shell"))
    folder.mkdir()
    (folder / "design.toml").write_text(
        f'{manifest}PYSPARK_SUBMIT_ARGS = "{submit}"\n', encoding="utf-8"
    )
    command = [BINARIES / "upheld", "run", "--design", folder, "--only", "@G28.loses-a-worker"]

    assert (
        subprocess.run(
            [*command, "--broker", "embedded", "--out", tmp_path / "out"], check=False
        ).returncode
        == 0
    )
