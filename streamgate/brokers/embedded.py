"""Apache Kafka itself as a child process: KRaft, one node, on loopback, from locked jars and any Java 17+.

It is the same broker as in a cluster, with the few settings changed that make a test wait for nothing: with
the defaults the successor of a killed member reads its first record after 39 s, with these within a second.
"""

import base64
import contextlib
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar
from uuid import uuid4

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from streamgate.brokers.jars import jar_set
from streamgate.brokers.java import Java, find_java
from streamgate.brokers.security import PLAINTEXT, Security, secure_listener
from streamgate.designs.reaper import RunScope
from streamgate.errors import MachineProblem

READY_DEADLINE_S = 90.0
_FORMAT_DEADLINE_S = 60.0
_ANSWER_S = 1.0
_POLL_S = 0.05
_PORT_TRIES = 5

_PRIVATE_LISTENERS = "INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"

T = TypeVar("T")

# What our brokers run, embedded and in a container alike; the replication factors are those of a single node.
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
    "log.cleaner.dedupe.buffer.size": 16 * 1024 * 1024,  # the default takes 128 MB of the heap at once
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

# A crash scenario is over before the optimising compiler has paid for itself.
_JVM = ("-Xmx512m", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData",
        "-XX:+ExitOnOutOfMemoryError")  # fmt: skip
_LOGGING = {
    "showDateTime": "true",
    "dateTimeFormat": "yyyy-MM-dd'T'HH:mm:ss.SSS",
    "showShortLogName": "true",
    "log.org.apache.kafka.common.config.AbstractConfig": "warn",  # hundreds of lines, all ours
}


@dataclass
class EmbeddedBroker:
    """A broker process of this run."""

    bootstrap: str
    version: str
    why: str
    process: subprocess.Popen[bytes]
    log: Path
    client: dict[str, str] = field(default_factory=dict, repr=False)
    kind: Literal["embedded"] = "embedded"
    ours: Literal[True] = True

    def close(self) -> None:
        """Kill it: its data lives in the run's scratch folder, and nobody reads it again."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()


class _PortTakenError(Exception):
    """The broker could not bind; with ports of our own choice it is started again on others."""


def open_embedded(
    run: RunScope, log_dir: Path, *, why: str, port: int | None = None, secured: bool = False
) -> EmbeddedBroker:
    """A broker that serves transactions and groups; `port` is kept if given; secured is SASL_SSL."""
    launch = _Launch(run, log_dir, why, find_java(), jar_set("kafka"), secured)
    for _ in range(_PORT_TRIES):
        try:
            return launch.start(port)
        except _PortTakenError:
            if port is not None:
                raise MachineProblem(
                    f"Port {port} of 127.0.0.1 is taken; end what listens there, or leave the choice to us."
                ) from None
        except OSError as failure:
            raise MachineProblem(
                f"The embedded broker cannot be set up in {run.scratch} or {log_dir} ({failure.strerror}); "
                "make room there."
            ) from None
    raise MachineProblem(f"No free port for the embedded broker was found in {_PORT_TRIES} tries; free some.")


@dataclass(frozen=True)
class _Launch:
    run: RunScope
    log_dir: Path
    why: str
    java: Java
    jars: list[Path]
    secured: bool

    def start(self, asked_port: int | None) -> EmbeddedBroker:
        home = self.run.scratch / f"broker-{uuid4().hex[:8]}"
        (home / "tmp").mkdir(parents=True)
        self.log_dir.mkdir(parents=True, exist_ok=True)
        security = secure_listener(home, self.java) if self.secured else PLAINTEXT
        ports = _free_ports(3)
        ports[0] = asked_port or ports[0]
        properties = home / "server.properties"
        properties.write_text(_server_properties(home / "data", ports, security))
        command = [
            str(self.java.path), *_JVM, f"-Djava.io.tmpdir={home / 'tmp'}",
            *(f"-Dorg.slf4j.simpleLogger.{name}={value}" for name, value in _LOGGING.items()),
            "-cp", ":".join(map(str, self.jars)),
        ]  # fmt: skip
        environment = {"PATH": os.defpath} | self.run.environment
        cluster_id = base64.urlsafe_b64encode(uuid4().bytes).rstrip(b"=").decode()
        log = self.log_dir / "broker.log"
        with log.open("ab") as written:
            start_of_log = written.tell()
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(
                    [*command, "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(properties)],
                    stdin=subprocess.DEVNULL, stdout=written, stderr=written, env=environment,
                    start_new_session=True, timeout=_FORMAT_DEADLINE_S, check=False,
                )  # fmt: skip
            if not (home / "data" / "meta.properties").exists():
                raise _explanation(log, start_of_log, "cannot format its storage")
            process = subprocess.Popen(
                [*command, "kafka.Kafka", str(properties)],
                stdin=subprocess.DEVNULL, stdout=written, stderr=written, env=environment,
                start_new_session=True,
            )  # fmt: skip
        self.run.session(process.pid)
        kafka = next(jar.stem.rpartition("-")[2] for jar in self.jars if jar.name.startswith("kafka_2.13-"))
        version = f"Apache Kafka {kafka}, Java {self.java.version}"
        broker = EmbeddedBroker(f"127.0.0.1:{ports[0]}", version, self.why, process, log, security.client)
        try:
            _await_ready(broker, cluster_id, start_of_log)
        except BaseException:
            broker.close()
            shutil.rmtree(home, ignore_errors=True)
            raise
        return broker


def _server_properties(data: Path, ports: list[int], security: Security) -> str:
    """Three listeners: one for clients, one for the broker's own coordinators, one for the controller."""
    client, internal, controller = (f"127.0.0.1:{port}" for port in ports)
    addresses: dict[str, str | int] = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CLIENT://{client},INTERNAL://{internal},CONTROLLER://{controller}",
        "advertised.listeners": f"CLIENT://{client},INTERNAL://{internal}",
        "listener.security.protocol.map": f"CLIENT:{security.protocol},{_PRIVATE_LISTENERS}",
        "inter.broker.listener.name": "INTERNAL",
        "log.dirs": str(data),
    }
    return "".join(f"{name}={value}\n" for name, value in (addresses | security.broker | SETTINGS).items())


def _free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago; all are held at once, so that they differ."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _await_ready(broker: EmbeddedBroker, cluster_id: str, start_of_log: int) -> None:
    """Return once the broker serves transactions and groups; raise what its log says if it cannot."""
    deadline = time.monotonic() + READY_DEADLINE_S
    host, _, port = broker.bootstrap.partition(":")

    def still_possible() -> bool:
        """Whether to ask again; the wait for the end of the process is also what paces the questions."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = broker.process.wait(_POLL_S)
            raise _explanation(broker.log, start_of_log, f"exits with code {code}")
        if time.monotonic() > deadline:
            raise _explanation(broker.log, start_of_log, f"is not ready within {READY_DEADLINE_S:.0f} s")
        return True

    while still_possible():
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 1):
            break
    if await_transactions(broker.bootstrap, broker.client, still_possible) != cluster_id:
        raise _PortTakenError  # somebody else's broker answered on the port that was free a moment ago


def await_transactions(bootstrap: str, client: dict[str, str], still_possible: Callable[[], bool]) -> str:
    """The cluster's id, once both coordinators answer, so that the first design does not wait for them."""
    quiet: dict[str, Any] = client | {
        "bootstrap.servers": bootstrap,
        "log_level": 0,
        "reconnect.backoff.max.ms": 200,
        "retry.backoff.ms": 20,
    }
    producer = Producer(quiet | {"transactional.id": "streamgate-ready"})
    consumer = Consumer(quiet | {"group.id": "streamgate-ready"})
    nowhere = [TopicPartition("streamgate-ready", 0)]
    try:
        cluster_id = _patiently(lambda: producer.list_topics(timeout=_ANSWER_S).cluster_id, still_possible)
        _patiently(lambda: producer.init_transactions(_ANSWER_S), still_possible)
        _patiently(lambda: consumer.committed(nowhere, _ANSWER_S), still_possible)
    finally:
        consumer.close()
    return str(cluster_id)


def _patiently(ask: Callable[[], T], still_possible: Callable[[], bool]) -> T:
    while True:
        try:
            return ask()
        except KafkaException as refusal:
            if refusal.args[0].fatal() or not still_possible():
                raise


def _explanation(log: Path, start_of_log: int, what: str) -> Exception:
    """Why a broker did not start, from the last error in its log."""
    with log.open("rb") as written:
        written.seek(start_of_log)
        lines = [line for line in written.read().decode(errors="replace").splitlines() if line.strip()]
    text = "\n".join(lines)
    if "Address already in use" in text:
        return _PortTakenError()
    if "No space left on device" in text:
        return MachineProblem(f"The disk is full: the embedded broker {what}; make room or set TMPDIR.")
    telling = [line for line in lines if re.search(r"\b(ERROR|FATAL|Error|\w*Exception)\b", line)]
    last = (telling or lines or ["nothing"])[-1].strip()
    return MachineProblem(f"The embedded broker {what}; the last word of {log} is: {last[:300]}")
