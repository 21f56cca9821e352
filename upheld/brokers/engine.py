"""The container engine of this machine, through testcontainers' core: its images, and containers
that end with a run.
"""

import contextlib
import os
import sys
from typing import Any

import docker  # type: ignore[import-untyped]
import requests
from docker.errors import DockerException, ImageNotFound  # type: ignore[import-untyped]

from upheld.supervisor.reaper import RUN_LABEL, RunScope

ENGINE_ANSWER_S = 5
EngineErrors = (DockerException, requests.RequestException)
_PULL_SILENCE_S = 60

# testcontainers' own reaper is one more image to pull; ours removes what the label names.
os.environ["TESTCONTAINERS_RYUK_DISABLED"] = "true"


class NoContainerError(Exception):
    """Why no container can be had here; `auto` goes on without one, an explicit choice does not."""


def find_image(*candidates: str) -> str:
    """The first of these images that the engine has; where it has none of them, the first one,
    pulled.
    """
    try:
        engine = docker.from_env(timeout=ENGINE_ANSWER_S)
        engine.ping()
    except EngineErrors:
        raise NoContainerError("no container engine answers") from None
    for candidate in candidates:
        with contextlib.suppress(ImageNotFound):
            engine.images.get(candidate)
            return candidate
    wanted = candidates[0]
    try:
        _pull(wanted)
    except EngineErrors as failure:
        raise NoContainerError(
            f"a container engine answers but has no {wanted} and cannot pull it "
            f"({first_line(failure)})"
        ) from None
    return wanted


def container_of(run: RunScope, image: str, port: int, inside: int) -> tuple[Any, str]:
    """A container that is still to be started and ends with the run, and the host where a port
    inside of it is this one.
    """
    # Imported late: it reads the switch above, once.
    from testcontainers.core.container import DockerContainer  # noqa: PLC0415

    run.containers()
    container = DockerContainer(image).with_kwargs(labels={RUN_LABEL: run.run_id})
    host = container.get_docker_client().host()
    local = host == "localhost"
    published: Any = ("127.0.0.1", port) if local else port  # loopback only, if the engine is here
    container.ports[f"{inside}/tcp"] = published
    return container, "127.0.0.1" if local else host


def first_line(failure: Exception) -> str:
    """What an engine says of a failure, cut to a line."""
    return (
        str(getattr(failure, "explanation", None) or failure).strip().splitlines()
        or ["no reason given"]
    )[0][:200]


def _pull(image: str) -> None:
    """Pull an image, saying so: it can take a minute; silence for as long is an end."""
    print(f"pulling {image}", file=sys.stderr)
    repository, _, tag = image.partition("@")[0].rpartition(":")
    if not repository or "/" in tag:
        repository, tag = image, "latest"
    for progress in docker.from_env(timeout=_PULL_SILENCE_S).api.pull(
        repository, tag=tag, stream=True, decode=True
    ):
        if "error" in progress:
            raise DockerException(progress["error"])
