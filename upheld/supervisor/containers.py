"""The containers of an instance, struck through their engine.

Each has the instance's tag as a label, as a process has it in its environment. So they are found
whoever started them, and one that a supervisor starts again is among them. The kernel freezes a
paused container as a whole. No container is asked to end here, so no grace of the engine counts.
"""

import contextlib
import time
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from upheld.supervisor.kin import KIN
from upheld.supervisor.stat import stats, with_descendants
from upheld.verdicts import HarnessError

INSTANCE_LABEL: Final = "upheld.instance"
ENGINE_S: Final = 20.0  # for one answer of the engine
GONE: Final = (404, 409)  # the container is not there any more, or is in that state already
_DEADLINE_S: Final = 20.0
_LOOK_AGAIN_S: Final = 0.02
_LINE_CHARS: Final = 200


class Containers:
    """The containers that carry the tag of one instance."""

    def __init__(self, tag: str) -> None:
        self._label = f"{INSTANCE_LABEL}={tag}"
        self._first: dict[str, int] = {}  # container -> the process id of its first process

    def pids(self) -> list[int]:
        """Return the ids of their living processes that this machine's kernel has."""
        with _told("list"):
            for each in self._listed("running", "paused"):
                if each not in self._first:
                    self._first[each] = self._first_process(each)
        table = stats()
        roots = {pid for each, pid in self._first.items() if _is_in(each, pid)}
        KIN.look(table, roots)
        return sorted(pid for pid in with_descendants(table, roots) if pid in table)

    def pause(self) -> None:
        """Freeze each container that runs."""
        with _told("pause"):
            for each in self._listed("running"):
                with _unless_gone():
                    self._engine.pause(each)

    def resume(self) -> None:
        """Let each paused container go on."""
        with _told("unpause"):
            for each in self._listed("paused"):
                with _unless_gone():
                    self._engine.unpause(each)

    def kill(self) -> list[int]:
        """Kill and remove each container, running or paused; return their processes' ids."""
        taken = self.pids()
        until = time.monotonic() + _DEADLINE_S
        with _told("remove"):
            while found := self._listed():
                if time.monotonic() > until:
                    raise HarnessError(
                        f"The container engine did not remove {', '.join(found)} within "
                        f"{_DEADLINE_S:.0f} s."
                    )
                for each in found:
                    with _unless_gone():
                        self._engine.remove_container(each, v=True, force=True)
                time.sleep(_LOOK_AGAIN_S)
        return taken

    @cached_property
    def _engine(self) -> Any:
        return client()

    def _listed(self, *states: str) -> list[str]:
        """Return the ids of the containers in these states; of all of them if none is named."""
        filters: dict[str, Any] = {"label": self._label}
        if states:
            filters["status"] = list(states)
        return [each["Id"] for each in self._engine.containers(all=True, filters=filters)]

    def _first_process(self, container: str) -> int:
        with _unless_gone():
            return int(self._engine.inspect_container(container)["State"]["Pid"])
        return 0


def client(timeout_s: float = ENGINE_S) -> Any:
    """Return a client of this machine's engine; `docker` is of an extra."""
    import docker

    return docker.from_env(timeout=timeout_s).api


def engine_errors() -> tuple[type[Exception], ...]:
    """Return the errors with which an engine refuses, or does not answer."""
    import requests
    from docker.errors import DockerException

    return DockerException, requests.RequestException


def first_line(failure: Exception) -> str:
    """Return an engine's words on a failure, cut to a line."""
    lines = str(getattr(failure, "explanation", None) or failure).strip().splitlines()
    return (lines or ["no reason given"])[0][:_LINE_CHARS]


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    """Turn an error of the engine into one of the harness: the design is not responsible."""
    try:
        yield
    except engine_errors() as failure:
        raise HarnessError(
            f"The container engine did not {what} the containers of an instance "
            f"({first_line(failure)})."
        ) from None


@contextlib.contextmanager
def _unless_gone() -> Iterator[None]:
    """Pass over what the engine says of a container that has ended or gone meanwhile."""
    from docker.errors import APIError

    try:
        yield
    except APIError as failure:
        if failure.status_code not in GONE:
            raise


def _is_in(container: str, pid: int) -> bool:
    """Return whether a process of this machine is in a container.

    An engine elsewhere, or one with other process ids, would name a stranger.
    """
    try:
        return container in Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return False
