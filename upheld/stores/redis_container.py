"""A Redis server in a container.

It is for machines that have an engine and no server on PATH.
"""

import contextlib
import functools
import os
from collections.abc import Iterator
from typing import Any, Final

import docker

from upheld.brokers.engine import (
    ENGINE_ANSWER_S,
    EngineErrors,
    NoContainerError,
    container_of,
    find_image,
    pin_of,
)
from upheld.brokers.node import free_ports
from upheld.errors import MachineProblem
from upheld.supervisor.containers import first_line
from upheld.supervisor.reaper import RunScope
from upheld.ui.console import announce

IMAGE: Final = "redis:8"
IMAGE_VARIABLE: Final = "UPHELD_REDIS_IMAGE"
_PORT: Final = 6379


@functools.cache
def redis_image() -> tuple[str, str]:
    """Return an image that the engine has, pulled if need be; or why there is none.

    The engine is asked once, since a pull takes its time. The user is told which content it is.
    """
    try:
        image = find_image(os.environ.get(IMAGE_VARIABLE) or IMAGE)
    except NoContainerError as reason:
        return "", str(reason)
    with contextlib.suppress(*EngineErrors):
        pin = pin_of(docker.from_env(timeout=ENGINE_ANSWER_S).images.get(image), image)
        announce(f"upheld: Redis is a container of {pin}")
    return image, ""


class RedisContainer:
    """The server, which keeps its disk until it is closed; `address` is a URL of it."""

    def __init__(self, run: RunScope, image: str, options: tuple[str, ...]) -> None:
        self._run = run
        self._image = image
        self._made: Any = None
        (port,) = free_ports(1)
        self._container, host, _ = container_of(run, image, port, _PORT)
        self._container.with_command(["redis-server", "--protected-mode", "no", *options])
        self.address = f"redis://{host}:{port}/0"

    def start(self) -> None:
        """Start the server, with what it kept."""
        with self._asked("start"):
            if self._made is None:
                self._container.start()
                self._made = self._container.get_wrapped_container()
                self._run.container(self._made.id)
            else:
                self._made.start()

    def has_ended(self) -> bool:
        """Return whether the server has ended, so that it will answer no more."""
        with self._asked("answer"):
            self._made.reload()
            return bool(self._made.status == "exited")

    def kill(self) -> None:
        """SIGKILL the server."""
        with self._asked("end"):
            self._made.kill()
            self._made.wait()

    def close(self) -> None:
        """Remove the container, with what it kept."""
        with contextlib.suppress(*EngineErrors):
            self._container.stop()

    @contextlib.contextmanager
    def _asked(self, what: str) -> Iterator[None]:
        try:
            yield
        except EngineErrors as failure:
            raise MachineProblem(
                f"The container of {self._image} does not {what} ({first_line(failure)}); try "
                f"`docker run {self._image}`."
            ) from None
