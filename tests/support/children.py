"""Processes that tests start under guards of one reaper."""

import atexit
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from upheld.supervisor.guarded import Child, Guarded
from upheld.supervisor.reaper import RunScope


@cache
def scope() -> RunScope:
    """Return the one run of this process's tests, whose reaper starts their processes."""
    made = RunScope()
    atexit.register(made.close)
    return made


@cache
def nowhere() -> int:
    """Return a descriptor that takes all and keeps nothing."""
    return os.open(os.devnull, os.O_WRONLY)


def child(command: Sequence[str], folder: Path = Path("/")) -> Child:
    """Return a process with this process's environment, whose errors go nowhere."""
    return Child(command, folder, dict(os.environ), nowhere())


@contextmanager
def started(*command: str) -> Iterator[Guarded]:
    """Start a process under a guard, and let go of it at the end."""
    process = scope().spawn(child(command))
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.close()
