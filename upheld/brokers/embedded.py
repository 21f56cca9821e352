"""Apache Kafka as a child process: KRaft, one node, on loopback.

It runs from locked jars and any Java from 17 on.
"""

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final, Literal, TypeVar
from uuid import uuid4

from upheld.brokers import classes
from upheld.brokers.jars import jar_set
from upheld.brokers.java import Java, find_java
from upheld.brokers.node import (
    HEAP,
    JVM_FLAGS,
    PORT_TRIES,
    SETTINGS,
    PortTakenError,
    await_ready,
    explanation,
    free_ports,
    is_free,
    listeners,
    new_cluster_id,
)
from upheld.brokers.security import PLAINTEXT, secure_listener
from upheld.errors import MachineProblem
from upheld.masking import private
from upheld.supervisor.reaper import RunScope

_FORMAT_DEADLINE_S: Final = 60.0
_END_DEADLINE_S: Final = 60.0
T = TypeVar("T")
_LOGGING: Final = {
    "showDateTime": "true",
    "showShortLogName": "true",
    "log.org.apache.kafka.common.config.AbstractConfig": "warn",  # else it repeats each setting
}


@dataclass
class EmbeddedBroker:
    """A broker process of this run."""

    bootstrap: str
    version: str
    why: str
    process: subprocess.Popen[bytes]
    log: Path
    serve: Callable[[], subprocess.Popen[bytes]] = field(repr=False)
    cluster_id: str
    client: dict[str, str] = field(default_factory=dict, repr=False)
    kind: Literal["embedded"] = "embedded"
    ours: Literal[True] = True

    @property
    def pids(self) -> list[int]:
        """The id of its one process."""
        return [self.process.pid]

    def kill(self) -> None:
        """SIGKILL the broker; its data stays in the run's scratch folder."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        """SIGSTOP the broker: its connections stay open, and it responds to nothing."""
        self.process.send_signal(signal.SIGSTOP)

    def revive(self) -> None:
        """Start the broker again, at the same address and on the same data.

        Return when it serves.
        """
        self.process = self.serve()
        await_ready(self.bootstrap, self.client, self.cluster_id, self.ended, self.log)

    def close(self) -> None:
        """End the broker: its data is not read again."""
        self.kill()

    def ended(self, within_s: float) -> bool:
        """Return whether the process ends within these seconds."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(within_s)
        return self.process.returncode is not None


def open_embedded(
    run: RunScope, log_dir: Path, *, why: str, port: int | None = None, secured: bool = False
) -> EmbeddedBroker:
    """Return a broker that serves transactions and groups.

    If `port` is given, the broker has that port, also when it is started again. If `secured`, the
    listener is SASL_SSL.
    """
    launch = Launch.found(run, log_dir / "broker.log", why)

    def start() -> EmbeddedBroker:
        try:
            return launch.start(port, secured=secured)
        except PortTakenError:
            if port is None:
                raise
            raise MachineProblem(
                f"Port {port} of 127.0.0.1 is taken; end what listens there, or leave the choice "
                "to us."
            ) from None

    return launch.on_free_ports(start)


@dataclass(frozen=True)
class Launch:
    """The parts that the nodes of a run are started with."""

    run: RunScope
    log: Path
    why: str
    java: Java
    jars: list[Path]
    heap: str = HEAP
    classes: tuple[str, ...] = ()  # the JVM's flags for archived classes

    @classmethod
    def found(cls, run: RunScope, log: Path, why: str, heap: str = HEAP) -> "Launch":
        """Return this machine's Java and jars, and its archive of their classes."""
        bare = cls(run, log, why, find_java(), jar_set("kafka"), heap)

        def live(flags: tuple[str, ...]) -> None:
            """Start a node and have it end in order, which is when its JVM archives."""
            launch = replace(bare, log=run.scratch / "classes.log", classes=flags)
            broker = launch.on_free_ports(lambda: launch.start(None, secured=False))
            broker.process.terminate()
            if not broker.ended(_END_DEADLINE_S):
                broker.close()

        return replace(bare, classes=classes.flags(bare.java, bare.jars, live))

    def on_free_ports(self, start: Callable[[], T]) -> T:
        """Return what `start` returns; try again on other ports if one is taken."""
        for _ in range(PORT_TRIES):
            try:
                self.log.parent.mkdir(parents=True, exist_ok=True)
                self.log.write_text("")
                return start()
            except PortTakenError:
                continue
            except OSError as failure:
                raise MachineProblem(
                    f"The embedded broker cannot be set up in {self.run.scratch} or "
                    f"{self.log.parent} ({failure.strerror}); make room there."
                ) from None
        raise MachineProblem(
            f"No free port for the embedded broker was found in {PORT_TRIES} tries; free some."
        )

    def start(self, asked_port: int | None, *, secured: bool) -> EmbeddedBroker:
        """Start a single node, and return it once it serves."""
        if asked_port is not None and not is_free(asked_port):
            raise PortTakenError
        home = self.home()
        security = secure_listener(home, self.java) if secured else PLAINTEXT
        ports = free_ports(3)
        ports[0] = asked_port or ports[0]
        client, internal, controller = (f"127.0.0.1:{port}" for port in ports)
        addresses = listeners((client, client), internal, controller, security.protocol)
        cluster_id = new_cluster_id()
        self.format(home, cluster_id, addresses | security.broker | SETTINGS)
        broker = self.node(home, cluster_id, client, security.client)
        try:
            await_ready(client, security.client, cluster_id, broker.ended, self.log)
        except BaseException:
            broker.close()
            shutil.rmtree(home, ignore_errors=True)
            raise
        return broker

    def home(self, name: str = "broker") -> Path:
        """Return a new folder for a node, which also holds its disk."""
        home = self.run.scratch / f"{name}-{uuid4().hex[:8]}"
        (home / "tmp").mkdir(parents=True)
        return home

    def format(self, home: Path, cluster_id: str, settings: dict[str, str | int]) -> None:
        """Write a node's settings, and have Kafka format its disk."""
        lines = (
            f"{name}={value}\n"
            for name, value in (settings | {"log.dirs": str(home / "data")}).items()
        )
        (home / "server.properties").write_text("".join(lines))
        formatting = self._java(home, "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c")
        try:
            formatting.wait(_FORMAT_DEADLINE_S)
        except subprocess.TimeoutExpired:
            formatting.kill()
            formatting.wait()
        if not (home / "data" / "meta.properties").exists():
            raise explanation(self.log, "cannot format its storage")

    def node(
        self, home: Path, cluster_id: str, address: str, client: dict[str, str]
    ) -> EmbeddedBroker:
        """Return a node that has just been started on its formatted disk."""
        serve = partial(self._serve, home)
        return EmbeddedBroker(
            address, self._version(), self.why, serve(), self.log, serve, cluster_id, client
        )

    def _serve(self, home: Path) -> subprocess.Popen[bytes]:
        process = self._java(home, "kafka.Kafka")
        self.run.session(process.pid)
        return process

    def _java(self, home: Path, *main: str) -> subprocess.Popen[bytes]:
        """Start a Java program on the node's properties.

        Its output goes to the broker's log, with the node's name in each line.
        """
        logging = _LOGGING | {"dateTimeFormat": f"yyyy-MM-dd'T'HH:mm:ss.SSS' {home.name}'"}
        command = [
            str(self.java.path),
            self.heap,
            *JVM_FLAGS,
            *self.classes,
            f"-Djava.io.tmpdir={home / 'tmp'}",
            *(f"-Dorg.slf4j.simpleLogger.{name}={value}" for name, value in logging.items()),
            "-cp",
            ":".join(map(str, self.jars)),
            *main,
            str(home / "server.properties"),
        ]
        with open(self.log, "ab", opener=private) as log:
            return subprocess.Popen(
                command,
                cwd=home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={"PATH": os.defpath} | self.run.environment,
                start_new_session=True,  # the harness handles Ctrl-C, not the broker
            )

    def _version(self) -> str:
        kafka = next(
            jar.stem.rpartition("-")[2] for jar in self.jars if jar.name.startswith("kafka_2.13-")
        )
        return f"Apache Kafka {kafka}, Java {self.java.version}"
