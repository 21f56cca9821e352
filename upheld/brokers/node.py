"""The settings and the addresses of a node of the harness, and when it is ready.

The node is a process or a container. It is the same Kafka as in a cluster. A few settings are
changed, so that a test waits for nothing. With the defaults, the successor of a killed member reads
its first record after 39 s, with these within a second.
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
from typing import Any, Final, TypeVar
from uuid import uuid4

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import ClusterMetadata

from upheld.errors import MachineProblem

READY_DEADLINE_S: Final = 90.0
PORT_TRIES: Final = 5
_LEAST_ROOM_BYTES: Final = 64 * 1024  # a broker has written as much when it has started
_ANSWER_S: Final = 1.0
_POLL_S: Final = 0.05
_LAST_CHARS: Final = 300

T = TypeVar("T")

# The replication factors are those of a single node.
SETTINGS: Final[dict[str, str | int]] = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 500,
    "group.consumer.min.session.timeout.ms": 500,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 500,
    "group.streams.min.session.timeout.ms": 500,
    "group.streams.min.heartbeat.interval.ms": 100,
    "group.streams.heartbeat.interval.ms": 500,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
    "log.cleaner.backoff.ms": 500,
    "log.cleaner.dedupe.buffer.size": 16 << 20,  # the default takes 128 MB of the heap at once
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

HEAP: Final = "-Xmx512m"
# A crash scenario is over before the optimising compiler has paid for itself.
JVM_FLAGS: Final = (
    "-Xshare:auto",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
)


class PortTakenError(Exception):
    """The node could not have its port.

    If the harness chose the port, the node is started again on others.
    """


def listeners(
    client: tuple[str, str], internal: str, controller: str, protocol: str
) -> dict[str, str | int]:
    """Return the settings with the addresses of a single node.

    `client` is where it listens for clients, and the address that it tells them. Brokers talk over
    a listener of their own, and so does a single one. The leader of a partition asks the
    coordinator of a transaction there. The clients' listener may be secured, or out of the broker's
    reach.
    """
    bound, advertised = client
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CLIENT://{bound},INTERNAL://{internal},CONTROLLER://{controller}",
        "advertised.listeners": f"CLIENT://{advertised},INTERNAL://{internal}",
        "listener.security.protocol.map": (
            f"CLIENT:{protocol},INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
        "inter.broker.listener.name": "INTERNAL",
    }


def new_cluster_id() -> str:
    """Return a new id in Kafka's own form.

    By this id the node that answers is known to be the one that was started.
    """
    while True:
        text = base64.urlsafe_b64encode(uuid4().bytes).rstrip(b"=").decode()
        if not text.startswith("-"):  # the tools would take it for an option
            return text


def free_ports(count: int) -> list[int]:
    """Return ports that were free a moment ago, all different."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def is_free(port: int) -> bool:
    """Return whether nothing listens there; connections that are ending do not count."""
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
    """Return once every node of the bootstrap serves transactions and groups.

    `ended` waits up to some seconds for the end of a node, and so it also paces the questions.

    Raises:
        MachineProblem: A node ended, or was silent too long; it quotes the log.
        PortTakenError: Another broker answered.
    """
    deadline = time.monotonic() + READY_DEADLINE_S

    def still_possible(heard: str = "no connection") -> bool:
        if ended(_POLL_S):
            raise explanation(log, "ends at start")
        if time.monotonic() > deadline:
            what = f"is not ready within {READY_DEADLINE_S:.0f} s ({bootstrap}: {heard})"
            raise explanation(log, what)
        return True

    for address in bootstrap.split(","):
        host, _, port = address.rpartition(":")
        while still_possible():
            with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 1):
                break
    if _await_coordinators(bootstrap, client, still_possible) != cluster_id:
        raise PortTakenError  # another broker has taken a port that was free a moment ago


def _await_coordinators(
    bootstrap: str, client: dict[str, str], still_possible: Callable[[str], bool]
) -> str:
    """Return the cluster's id, once both coordinators answer.

    So the first design does not wait for the coordinators. No replica is missing by then.
    """
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
            still_possible("replicas are missing")
    finally:
        consumer.close()
    return str(cluster_id)


def _is_whole(found: ClusterMetadata, nodes: int) -> bool:
    """Return whether that many nodes are up, and all replicas are in sync."""
    partitions = (
        partition for topic in found.topics.values() for partition in topic.partitions.values()
    )
    return len(found.brokers) == nodes and all(
        len(each.isrs) == len(each.replicas) for each in partitions
    )


def _patiently(ask: Callable[[], T], still_possible: Callable[[str], bool]) -> T:
    while True:
        try:
            return ask()
        except KafkaException as refusal:
            error = refusal.args[0]
            if error.fatal() or not still_possible(error.str()):
                raise


def explanation(log: Path, what: str) -> Exception:
    """Return the reason why a node did not start, from the last error in its log."""
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
    return MachineProblem(f"The broker {what}; the last word of {log} is: {last[:_LAST_CHARS]}")
