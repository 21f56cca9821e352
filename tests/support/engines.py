"""A container engine for tests: it notes what it is asked, and has no process."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import requests
from docker.errors import APIError


class Engine:
    """A client of an engine, with the states of containers by their ids."""

    def __init__(self, **states: str) -> None:
        self.states = states
        self.asked: list[tuple[str, str]] = []
        self.made: dict[str, Any] = {}
        self.late = ""  # a container that appears when another one is removed
        self.refused: dict[str, int] = {}  # what is asked -> the status of its refusal
        self.first_process = 0
        self.labels: set[str] = set()

    def containers(self, *, filters: dict[str, Any], **how: bool) -> list[dict[str, str]]:
        """Return the containers in some states."""
        assert how == {"all": True}
        self.labels.add(filters["label"])
        states = filters.get("status", [*self.states.values()])
        return [{"Id": each} for each, state in self.states.items() if state in states]

    def inspect_container(self, container: str) -> dict[str, Any]:
        """Return the process id of its first process."""
        self._ask("inspect", container)
        return {"State": {"Pid": self.first_process}}

    def pause(self, container: str) -> None:
        """Note it."""
        self._ask("pause", container)
        self.states[container] = "paused"

    def unpause(self, container: str) -> None:
        """Note it."""
        self._ask("unpause", container)
        self.states[container] = "running"

    def remove_container(self, container: str, *, v: bool, force: bool) -> None:
        """Note it."""
        assert v
        assert force
        self._ask("remove", container)
        self.states.pop(container, None)
        if self.late:
            self.states[self.late] = "running"
            self.late = ""

    def create_host_config(self, **fields: Any) -> dict[str, Any]:
        """Return it as it is."""
        return fields

    def create_container(self, image: str, command: Any, **fields: Any) -> dict[str, str]:
        """Note it."""
        self._ask("create", image)
        self.made = {"image": image, "command": command, **fields}
        return {"Id": "made"}

    def attach(self, container: str, *, stream: bool) -> Iterator[bytes]:
        """Yield a log of two pieces."""
        assert stream
        self._ask("attach", container)
        return iter([b"up\n", b"bye\n"])

    def start(self, container: str) -> None:
        """Note it."""
        self._ask("start", container)

    def wait(self, container: str) -> dict[str, int]:
        """Return an exit code."""
        self._ask("wait", container)
        return {"StatusCode": 7}

    def _ask(self, what: str, container: str) -> None:
        if what in self.refused:
            answer = requests.Response()
            answer.status_code = self.refused[what]
            raise APIError(HTTPStatus(answer.status_code).phrase, answer, f"{what} is refused")
        self.asked.append((what, container))
