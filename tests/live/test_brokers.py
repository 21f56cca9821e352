"""The brokers: what each is, and how each ends."""

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from upheld.brokers import Asked, Broker, open_broker
from upheld.brokers.cluster import open_cluster
from upheld.brokers.container import kafka_image
from upheld.brokers.embedded import EmbeddedBroker, open_embedded
from upheld.brokers.engine import NoContainerError
from upheld.errors import MachineProblem
from upheld.kafka.reading import Reading
from upheld.nemesis.brokers import id_in, log_of
from upheld.supervisor.reaper import RUN_LABEL, RunScope, members

DEADLINE_S = 30.0
POLL_S = 0.02
KILLED = 2  # nodes of three, one after the other
# Transactional ids, on more than one node.
PROBES = [f"upheld-probe-{number}" for number in range(6)]


@pytest.fixture
def run() -> Iterator[RunScope]:
    """Yield a run of this test's own."""
    with RunScope() as scope:
        yield scope


def transacted(broker: Broker) -> list[tuple[bytes | None, bytes | None]]:
    """Return what a reader of committed data sees of two records, one aborted."""
    client: dict[str, Any] = broker.client | {"bootstrap.servers": broker.bootstrap}
    admin = AdminClient(client)
    admin.create_topics([NewTopic("probe", 1, 1)])["probe"].result(DEADLINE_S)
    producer = Producer(client | {"transactional.id": "probe"})
    producer.init_transactions(DEADLINE_S)
    for value, ends in (
        (b"aborted", producer.abort_transaction),
        (b"committed", producer.commit_transaction),
    ):
        producer.begin_transaction()
        producer.produce("probe", value, b"key")
        producer.flush(DEADLINE_S)
        ends(DEADLINE_S)
    return visible(broker)


def visible(broker: Broker) -> list[tuple[bytes | None, bytes | None]]:
    """Return the first record that a read_committed reader is given."""
    client: dict[str, Any] = broker.client | {"bootstrap.servers": broker.bootstrap}
    settings = {"group.id": "probe", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer(client | settings)
    consumer.subscribe(["probe"])
    message = consumer.poll(DEADLINE_S)
    consumer.close()
    assert message is not None
    return [(message.key(), message.value())]


def test_the_embedded_broker_keeps_transactions_apart(broker: EmbeddedBroker) -> None:
    """A reader of committed data sees no aborted record, and each committed one."""
    assert transacted(broker) == [(b"key", b"committed")]
    assert (broker.kind, broker.why, broker.ours, broker.client) == (
        "embedded",
        "asked for",
        True,
        {},
    )
    assert broker.version.startswith("Apache Kafka 4.3.1, Java ")
    assert "Kafka Server started" in broker.log.read_text()


def test_a_killed_broker_comes_back_with_what_it_had(run: RunScope, tmp_path: Path) -> None:
    """A killed broker comes back at the same address, after its old registration.

    The output of both lives stands in one log. Where Java has an archive of its own classes, the
    node takes Kafka's from one as well.
    """
    broker = open_embedded(run, tmp_path, why="a test")
    mapped = Path(f"/proc/{broker.process.pid}/maps").read_text()
    assert ("/classes.jsa" in mapped) == ("/upheld/kafka-" in mapped)
    assert transacted(broker) == [(b"key", b"committed")]

    broker.kill()

    assert broker.ended(0)
    broker.revive()
    assert not broker.ended(0)
    assert visible(broker) == [(b"key", b"committed")]
    assert (tmp_path / "broker.log").read_text().count("Kafka Server started") == 2


def test_a_cluster_outlives_two_of_its_nodes_in_turn_and_ends_with_its_run(tmp_path: Path) -> None:
    """Another node commits the transactions that the dead node coordinated.

    The dead node comes back, and the cluster can spare another.
    """
    with RunScope() as run:
        cluster = open_cluster(run, tmp_path, why="a test")
        assert (cluster.kind, cluster.ours, len(members(run.run_id, []))) == ("embedded", True, 3)
        assert cluster.version.endswith(", 3 nodes")
        assert transacted(cluster) == [(b"key", b"committed")]
        reading = Reading(cluster.bootstrap, cluster.client)
        reading.create({"replicated": 1})
        for name in PROBES:
            Producer(reading.settings | {"transactional.id": name}).init_transactions(DEADLINE_S)
        killed = set[int]()
        while len(killed) < KILLED:
            name = next(name for name in PROBES if not coordinators(reading, name) & killed)
            ids = (name, id_in(log_of(name), "upheld-twin"))
            producers = [Producer(reading.settings | {"transactional.id": each}) for each in ids]
            for producer in producers:
                producer.init_transactions(DEADLINE_S)
                producer.begin_transaction()
                producer.produce("replicated", b"value")
                producer.flush(DEADLINE_S)
            old = coordinators(reading, *ids)
            assert len(old) == 1

            cluster.kill(*old)

            assert not cluster.ended(0)
            deadline = time.monotonic() + DEADLINE_S
            while not (new := coordinators(reading, *ids)):
                assert time.monotonic() < deadline
                time.sleep(POLL_S)
            for producer in producers:
                producer.commit_transaction(DEADLINE_S)
            cluster.revive()
            assert new != old
            killed |= old
            assert sorted(reading.raw.coordinated()) == [1, 2, 3]
        all_of_it = {0: 2 * 2 * KILLED}  # a record and a marker for each transaction
        deadline = time.monotonic() + DEADLINE_S
        # Markers are written after the answer.
        while reading.ends("replicated", 1) != (
            all_of_it,
            all_of_it,
        ):
            assert time.monotonic() < deadline
            time.sleep(POLL_S)
        reading.close()

    assert members(run.run_id, []) == []
    assert (tmp_path / "cluster.log").read_text().count("Kafka Server started") == 3 + KILLED


def coordinators(reading: Reading, *transactional_ids: str) -> set[int]:
    """Return the nodes that coordinate these ids."""
    known = reading.raw.coordinated().items()
    return {node for node, ids in known if ids.keys() & set(transactional_ids)}


def test_a_taken_port_is_named(run: RunScope, tmp_path: Path) -> None:
    """A port that was asked for and is taken is a problem of the machine, not a wait."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        with pytest.raises(MachineProblem, match=rf"^Port {port} of 127\.0\.0\.1 is taken; "):
            open_embedded(run, tmp_path, why="a test", port=port)


def test_a_java_that_exits_at_start_is_quoted(
    run: RunScope, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last word of the log is in the sentence, so that nobody has to look for it."""
    java = tmp_path / "java"
    java.write_text(
        "#!/bin/sh\n[ $# = 1 ] && echo 'java version \"17\"' >&2 || echo 'Error: no heap' >&2\n"
    )
    java.chmod(0o755)
    monkeypatch.setenv("UPHELD_JAVA", str(java))

    with pytest.raises(
        MachineProblem, match=r"; the last word of .*broker\.log is: Error: no heap$"
    ):
        open_embedded(run, tmp_path / "logs", why="a test")


@pytest.fixture
def image() -> str:
    """Return the image that an engine here has; without any the test is skipped."""
    try:
        return kafka_image(None)
    except NoContainerError as reason:
        pytest.skip(str(reason))


def test_auto_takes_a_container_where_an_engine_has_the_image(
    run: RunScope, image: str, tmp_path: Path
) -> None:
    """The Kafka of an image is the same: transactions work, and the log is kept.

    Closing the broker removes the container.
    """
    broker = open_broker(Asked("auto"), run=run, log_dir=tmp_path)

    assert transacted(broker) == [(b"key", b"committed")]
    assert (broker.kind, broker.why) == ("container", f"a container engine answers and has {image}")
    assert len(containers_of(run)) == 1
    broker.close()
    assert containers_of(run) == []
    assert "Kafka Server started" in (tmp_path / "broker.log").read_text()


def containers_of(run: RunScope) -> list[Any]:
    """Return the containers of a run that the engine still has, running or not."""
    return list(
        docker.from_env().containers.list(all=True, filters={"label": f"{RUN_LABEL}={run.run_id}"})
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence says which disk, and the scratch folder does not stay on it."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24k", "tmpfs", disk], check=True)
    try:
        monkeypatch.setattr(tempfile, "tempdir", str(disk))
        with (
            RunScope() as run,
            pytest.raises(MachineProblem, match=rf"^The disk of {disk} is full: "),
        ):
            open_embedded(run, tmp_path / "logs", why="a test")

        assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", disk], check=True)
