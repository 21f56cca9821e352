"""Miniature designs: each is small, and wrong in exactly one named way."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from children import scope

from upheld.protocol.manifest import Manifest
from upheld.protocol.messages import Start
from upheld.supervisor.guarded import Spawn as Spawner
from upheld.supervisor.instance import Instance

MINIATURES = Path(__file__).parent
Spawn = Callable[..., Instance]
START = Start(
    program="relay",
    application_id="app",
    instance="a",
    bootstrap="localhost:1",
    client={"sasl.username": "alice", "sasl.password": "hunter2"},
    topics={},
    session_timeout_ms=1000,
    transaction_timeout_ms=1000,
    state_dir="/nowhere",
    durable_dir="/nowhere",
)


class Run:
    """A run that tells its processes nothing."""

    environment: ClassVar[dict[str, str]] = {}

    @property
    def spawn(self) -> Spawner:
        """Start processes under guards."""
        return scope().spawn


def until(true: Callable[[], bool]) -> None:
    """Wait for what has to come soon."""
    end = time.monotonic() + 5
    while not true():
        assert time.monotonic() < end
        time.sleep(0.005)


def manifest(habit: str, **fields: object) -> Manifest:
    """Return the manifest of a miniature."""
    return Manifest.model_validate(
        {
            "folder": MINIATURES,
            "name": "miniature",
            "version": "1",
            "command": [sys.executable, "-I", "-S", "misbehaves.py", habit],
            "programs": ["relay"],
            "modes": ["at_least_once"],
        }
        | fields
    )
