"""What a node of ours is, as a process or in a container: its settings, its addresses, and when it
is ready.

It is the same Kafka as in a cluster, with the few settings changed that make a test wait for
nothing: with the defaults the successor of a killed member reads its first record after 39 s, with
these within a second.
"""

import base64
import contextlib
import re
import shutil
import socket
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import ClusterMetadata  # type: ignore[attr-defined]

from upheld.errors import MachineProblem

READY_DEADLINE_S = 90.0
PORT_TRIES = 5
_LEAST_ROOM_BYTES = 64 * 1024  # a broker that has just started has written as much
_ANSWER_S = 1.0
_POLL_S = 0.05

T = TypeVar("T")

# The replication factors are those of a single node.
SETTINGS: dict[str, str | int] = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 500,
    "group.consumer.min.session.timeout.ms": 500,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.streams.min.session.timeout.ms": 500,
    "group.streams.min.heartbeat.interval.ms": 100,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
    "log.cleaner.backoff.ms": 500,
    "log.cleaner.dedupe.buffer.size": 16
    * 1024
    * 1024,  # the default takes 128 MB of the heap at once
    "log.retention.ms": -1,  # nothing is deleted while it is judged
    "offsets.topic.num.partitions": 4,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.num.partitions": 4,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "default.replication.factor": 1,
    "min.insync.replicas": 1,
}

HEAP = "-Xmx512m"
# A crash scenario is over before the optimising compiler has paid for itself.
JVM_FLAGS = ("-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData",
             "-XX:+ExitOnOutOfMemoryError")  # fmt: skip


class PortTakenError(Exception):
    """The node could not have its port; with ports of our own choice it is started again on
    others.
    """


def listeners(
    client: tuple[str, str], internal: str, controller: str, protocol: str
) -> dict[str, str | int]:
    """The addresses of a single node; `client` is where it listens and what it tells clients.

    Brokers talk over a listener of their own, a single one too: the leader of a partition asks the
    coordinator of a transaction there, and the clients' listener may be secured or out of the
    broker's reach.
    """
    bound, advertised = client
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CLIENT://{bound},INTERNAL://{internal},CONTROLLER://{controller}",
        "advertised.listeners": f"CLIENT://{advertised},INTERNAL://{internal}",
        "listener.security.protocol.map": f"CLIENT:{protocol},INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "INTERNAL",
    }


def new_cluster_id() -> str:
    """An id in Kafka's own form, by which the node that answers is known to be the one that was
    started.
    """
    while True:
        text = base64.urlsafe_b64encode(uuid4().bytes).rstrip(b"=").decode()
        if not text.startswith("-"):  # the tools would take it for an option
            return text


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago; all are held at once, so that they differ."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def is_free(port: int) -> bool:
    """Whether nothing listens there; connections that are just ending do not count."""
    with socket.socket() as attempt:
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def await_ready(
    bootstrap: str,
    client: dict[str, str],
    cluster_id: str,
    ended: Callable[[float], bool],
    log: Path,
) -> None:
    """Return once every node of the bootstrap is there and serves transactions and groups; if one
    ends or is silent too long, quote the log.

    `ended` waits up to some seconds for the end of a node: that is also what paces the questions.
    """
    deadline = time.monotonic() + READY_DEADLINE_S

    def still_possible() -> bool:
        if ended(_POLL_S):
            raise explanation(log, "ends at start")
        if time.monotonic() > deadline:
            raise explanation(log, f"is not ready within {READY_DEADLINE_S:.0f} s")
        return True

    for address in bootstrap.split(","):
        host, _, port = address.rpartition(":")
        while still_possible():
            with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 1):
                break
    if _await_coordinators(bootstrap, client, still_possible) != cluster_id:
        raise PortTakenError  # somebody else's broker answered on the port that was free a moment ago


def _await_coordinators(
    bootstrap: str, client: dict[str, str], still_possible: Callable[[], bool]
) -> str:
    """The cluster's id, once both coordinators answer, so that the first design does not wait for
    them, and nothing lacks a replica."""
    quiet: dict[str, Any] = client | {
        "bootstrap.servers": bootstrap,
        "log_level": 0,
        "reconnect.backoff.max.ms": 200,
        "retry.backoff.ms": 20,
    }
    producer = Producer(quiet | {"transactional.id": "upheld-ready"})
    consumer = Consumer(quiet | {"group.id": "upheld-ready"})
    nowhere = [TopicPartition("upheld-ready", 0)]
    try:
        cluster_id = _patiently(
            lambda: producer.list_topics(timeout=_ANSWER_S).cluster_id, still_possible
        )
        _patiently(lambda: producer.init_transactions(_ANSWER_S), still_possible)
        _patiently(lambda: consumer.committed(nowhere, _ANSWER_S), still_possible)
        nodes = len(bootstrap.split(","))
        while not _is_whole(
            _patiently(lambda: producer.list_topics(timeout=_ANSWER_S), still_possible), nodes
        ):
            still_possible()
    finally:
        consumer.close()
    return str(cluster_id)


def _is_whole(found: ClusterMetadata, nodes: int) -> bool:
    """Whether so many nodes are up, and each partition's replicas all have what its leader has."""
    partitions = (
        partition for topic in found.topics.values() for partition in topic.partitions.values()
    )
    return len(found.brokers) == nodes and all(
        len(each.isrs) == len(each.replicas) for each in partitions
    )


def _patiently(ask: Callable[[], T], still_possible: Callable[[], bool]) -> T:
    while True:
        try:
            return ask()
        except KafkaException as refusal:
            if refusal.args[0].fatal() or not still_possible():
                raise


def explanation(log: Path, what: str) -> Exception:
    """Why a node did not start, from the last error in its log."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    text = "\n".join(lines)
    if "Address already in use" in text:
        return PortTakenError()
    places = (log.parent, Path(tempfile.gettempdir()))
    full = [place for place in places if shutil.disk_usage(place).free < _LEAST_ROOM_BYTES]
    if full or "No space left on device" in text:
        where = " or ".join(map(str, full or places))
        return MachineProblem(f"The disk of {where} is full: the broker {what}; make room there.")
    telling = [line for line in lines if re.search(r"\b(ERROR|FATAL|Error|\w*Exception)\b", line)]
    last = (telling or lines or ["nothing"])[-1].strip()
    return MachineProblem(f"The broker {what}; the last word of {log} is: {last[:300]}")
