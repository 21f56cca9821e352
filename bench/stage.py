"""The stage of a benchmark: an embedded broker, topics, and one booted instance."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from upheld.brokers import Asked, Broker, open_broker
from upheld.programs import PROGRAMS
from upheld.protocol.manifest import Manifest
from upheld.protocol.messages import Mode, Ready, Start
from upheld.supervisor.instance import Instance
from upheld.supervisor.reaper import RunScope

PARTITIONS = 4


@dataclass
class Stage:
    """The broker, the topics by role, and the instance, which is not started yet."""

    broker: Broker
    topics: dict[str, str]
    instance: Instance
    boot_s: float
    request: Start

    def start(self) -> str:
        """Start the instance, and return the consumer group that it commits with."""
        ready = self.instance.start(self.request)
        if not isinstance(ready, Ready):
            raise SystemExit(f"{self.instance.manifest.name} did not start: {ready}")
        return ready.consumer_group or ""


@contextmanager
def staged(
    manifest: Manifest,
    program: str,
    mode: Mode,
    parameters: dict[str, int | str],
    configs: dict[str, dict[str, str]] | None = None,
) -> Iterator[Stage]:
    """Set up a stage, and end all of it afterwards.

    Args:
        manifest: The design.
        program: The program whose topics are made.
        mode: The mode of the application.
        parameters: The parameters of the program.
        configs: The settings of topics, by role.
    """
    with RunScope() as run, tempfile.TemporaryDirectory() as logs:
        broker = open_broker(Asked("embedded"), run=run, log_dir=Path(logs))
        topics = {role: f"bench-{role}" for role in PROGRAMS[program].topics}
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, **broker.client})
        settings = {topics[role]: config for role, config in (configs or {}).items()}
        made = [
            NewTopic(name, PARTITIONS, 1, config=settings.get(name, {})) for name in topics.values()
        ]
        for created in admin.create_topics(made).values():
            created.result()
        folders = {name: run.scratch / f"bench-{name}" for name in ("state", "durable")}
        for folder in folders.values():
            folder.mkdir()
        begun = time.monotonic()
        instance = Instance(manifest, run, Path(logs))
        instance.greet()
        request = Start(
            program=program,
            application_id="bench",
            instance="a",
            mode=mode,
            topics=topics,
            bootstrap=broker.bootstrap,
            client=broker.client,
            session_timeout_ms=6_000,
            transaction_timeout_ms=60_000,
            parameters=parameters,
            state_dir=str(folders["state"]),
            durable_dir=str(folders["durable"]),
        )
        yield Stage(broker, topics, instance, time.monotonic() - begun, request)
        instance.kill()
        broker.close()
