"""Apache Kafka in a container, by testcontainers' core.

The Kafka class of testcontainers is for another image. The image is configured by `KAFKA_…`
variables, the convention of apache/kafka and of most others, so that any of them can be used. The
container carries the run's label before it starts, for the reaper.
"""

import contextlib
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from docker.errors import APIError

from upheld.brokers.engine import (
    ENGINE_ANSWER_S,
    EngineErrors,
    container_of,
    find_image,
    pin_of,
)
from upheld.brokers.image import LOCAL_IMAGE
from upheld.brokers.node import (
    HEAP,
    JVM_FLAGS,
    PORT_TRIES,
    SETTINGS,
    PortTakenError,
    await_ready,
    free_ports,
    listeners,
    new_cluster_id,
)
from upheld.errors import MachineProblem
from upheld.masking import private
from upheld.supervisor.containers import first_line
from upheld.supervisor.reaper import RunScope
from upheld.threads import Heard

IMAGE: Final = "apache/kafka:4.3.1"
IMAGE_VARIABLE: Final = "UPHELD_KAFKA_IMAGE"
_TAKEN: Final = ("port is already allocated", "address already in use")


@dataclass
class ContainerBroker:
    """A broker in a container of this run."""

    bootstrap: str
    version: str
    why: str
    container: Any = field(repr=False)
    log: "_KeptLog" = field(repr=False)
    cluster_id: str
    client: dict[str, str] = field(default_factory=dict, repr=False)
    kind: Literal["container"] = "container"
    ours: Literal[True] = True

    @property
    def pids(self) -> list[int]:
        """Empty: the processes are the engine's children."""
        return []

    def ended(self, within_s: float) -> bool:
        """Return whether the container ends within these seconds."""
        return self.log.ended(within_s)

    def kill(self) -> None:
        """SIGKILL the broker; the container keeps its data."""
        self.container.get_wrapped_container().kill()
        self.log.ended(ENGINE_ANSWER_S)

    def revive(self) -> None:
        """Start the container again, at the same address and on the same data.

        Return when the broker serves.
        """
        self.container.get_wrapped_container().start()
        self.log = self.log.restarted()
        await_ready(self.bootstrap, self.client, self.cluster_id, self.log.ended, self.log.path)

    def close(self) -> None:
        """Remove the container with its data; its log has been kept."""
        with contextlib.suppress(*EngineErrors):
            self.container.stop()
        self.log.ended(ENGINE_ANSWER_S)


def kafka_image(image: str | None) -> str:
    """Return an image that the engine has, pulled if it has none.

    It is the asked one, or else Apache's, or else the local one.
    """
    asked = image or os.environ.get(IMAGE_VARIABLE)
    return find_image(asked) if asked else find_image(IMAGE, LOCAL_IMAGE)


def open_container(run: RunScope, log_dir: Path, *, image: str, why: str) -> ContainerBroker:
    """Return a broker in a container of the image, once it serves.

    It serves transactions and groups.
    """
    log_dir.mkdir(parents=True, exist_ok=True)
    for _ in range(PORT_TRIES):
        try:
            return _start(run, log_dir / "broker.log", image, why)
        except PortTakenError:
            continue
        except EngineErrors as failure:
            raise MachineProblem(
                f"The container of {image} does not start ({first_line(failure)}); try `docker "
                f"run {image}`."
            ) from None
    raise MachineProblem(
        f"No free port for the container was found in {PORT_TRIES} tries; free some."
    )


def _start(run: RunScope, log: Path, image: str, why: str) -> ContainerBroker:
    port, internal, controller = free_ports(3)
    # It is the same outside and inside, because clients get it as the broker's address.
    container, host, bound = container_of(run, image, port, port)
    cluster_id = new_cluster_id()
    addresses = listeners(
        (f"{bound}:{port}", f"{host}:{port}"),
        f"127.0.0.1:{internal}",
        f"127.0.0.1:{controller}",
        "PLAINTEXT",
    )
    for name, value in (addresses | SETTINGS | {"log.dirs": "/tmp/kraft"}).items():
        container.with_env(f"KAFKA_{name.replace('.', '_').upper()}", str(value))
    container.with_envs(
        CLUSTER_ID=cluster_id, KAFKA_HEAP_OPTS=HEAP, KAFKA_JVM_PERFORMANCE_OPTS=" ".join(JVM_FLAGS)
    )
    try:
        container.start()
        made = container.get_wrapped_container()
        run.container(made.id)
        log.write_text("")
        kept = _KeptLog(made, log)
        version = f"image {pin_of(made.image, image)}"
        broker = ContainerBroker(f"{host}:{port}", version, why, container, kept, cluster_id)
        await_ready(broker.bootstrap, {}, cluster_id, kept.ended, log)
    except BaseException as failure:
        container.stop()
        if isinstance(failure, APIError) and any(taken in str(failure) for taken in _TAKEN):
            raise PortTakenError from None
        raise
    return broker


class _KeptLog:
    """Copies a container's log to a file while it runs: later the engine has none."""

    def __init__(self, container: Any, path: Path, since: float | None = None) -> None:
        self.path = path
        self._container = container
        self._copying = Heard(self._copy, since, name=f"log {path.name}")
        self._copying.start()

    def restarted(self) -> "_KeptLog":
        """Return a copy of the log since now, for a container that was started again."""
        return _KeptLog(self._container, self.path, time.time())

    def _copy(self, since: float | None) -> None:
        with (
            open(self.path, "ab", buffering=0, opener=private) as log,
            contextlib.suppress(*EngineErrors),
        ):
            for piece in self._container.logs(stream=True, follow=True, since=since):
                log.write(piece)

    def ended(self, within_s: float) -> bool:
        """Return whether the container ends within these seconds; its log ends with it."""
        self._copying.join(within_s)
        return not self._copying.is_alive()
