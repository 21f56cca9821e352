"""The container engine of this machine, by testcontainers' core.

It has images, and containers that end with a run.
"""

import contextlib
import os
import socket
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import docker
import requests
from docker.errors import DockerException, ImageNotFound

from upheld.supervisor.containers import first_line
from upheld.supervisor.reaper import RUN_LABEL, RunScope
from upheld.text import visible
from upheld.ui.console import announce

ENGINE_ANSWER_S: Final = 5
EngineErrors = (DockerException, requests.RequestException)
_PULL_SILENCE_S: Final = 60
_LOOPBACK: Final = "127.0.0.1"

# The reaper of testcontainers is one more image to pull. The harness's own removes all containers
# with the run's label.
os.environ["TESTCONTAINERS_RYUK_DISABLED"] = "true"


class NoContainerError(Exception):
    """The reason why there is no container here.

    `auto` goes on without one, and an explicit choice fails.
    """


def find_image(*candidates: str) -> str:
    """Return the first of these images that the engine has.

    If it has none of them, the first one is pulled.

    Raises:
        NoContainerError: No engine answers, or the image cannot be pulled.
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


def demand_our_network() -> None:
    """Demand an engine whose containers can stand in this machine's network.

    Raises:
        NoContainerError: No engine answers, or its containers stand elsewhere.
    """
    try:
        info = docker.from_env(timeout=ENGINE_ANSWER_S).info()
    except EngineErrors:
        raise NoContainerError("no container engine answers") from None
    if not has_our_network(info, socket.gethostname()):
        raise NoContainerError(
            "the container engine gives no container the network of this machine, as one without "
            "root, in a virtual machine or with user namespaces"
        )


def image_id(name: str) -> str:
    """Return the digest of an image that the engine has.

    Raises:
        NoContainerError: No engine answers, or it has no such image.
    """
    try:
        found: str = docker.from_env(timeout=ENGINE_ANSWER_S).images.get(name).id
    except ImageNotFound:
        raise NoContainerError(f"the container engine has no image {name}") from None
    except EngineErrors:
        raise NoContainerError("no container engine answers") from None
    return found


class ImageName(NamedTuple):
    """The parts of an image's name; a tag and a digest are empty if it has none."""

    repository: str
    tag: str
    digest: str


def parts_of(image: str) -> ImageName:
    """Return the parts of an image's name; a host's port has a colon too."""
    named, _, digest = image.partition("@")
    before, _, after = named.rpartition(":")
    if not before or "/" in after:
        return ImageName(named, "", digest)
    return ImageName(before, after, digest)


def pin_of(image: Any, name: str) -> str:
    """Return an image's name with the digest of its content.

    An image that was built here has none. It is called unpinned, and has the id that this engine
    gave it.
    """
    repository = parts_of(name).repository
    known = image.attrs.get("RepoDigests") or []
    own = [each for each in known if each.startswith(f"{repository}@")]
    return next(iter([*own, *known]), f"{name}, unpinned, {image.short_id}")


class Placed(NamedTuple):
    """A container that is not started yet, and the host where its port can be reached.

    `bound` is the address at which its server listens, inside.
    """

    container: Any
    host: str
    bound: str


def container_of(run: RunScope, image: str, port: int, inside: int) -> Placed:
    """Return a container that ends with the run, its port `inside` reached at `port`.

    If both are the same, it stands in this machine's own network where the engine has it. A bridge
    and its forwarder can fail (docs/adr/0140). Otherwise the port is published, on the loopback
    interface alone if the engine is here.
    """
    # The import reads the switch above, once.
    from testcontainers.core.container import DockerContainer

    run.containers()
    container = DockerContainer(image).with_kwargs(labels={RUN_LABEL: run.run_id})
    client = container.get_docker_client()
    host = client.host()
    if host != "localhost":
        container.ports[f"{inside}/tcp"] = port
        return Placed(container, host, "0.0.0.0")
    if port == inside and has_our_network(client.client.info(), socket.gethostname()):
        container.with_kwargs(labels={RUN_LABEL: run.run_id}, network="host")
        return Placed(container, _LOOPBACK, _LOOPBACK)
    published: Any = (_LOOPBACK, port)
    container.ports[f"{inside}/tcp"] = published
    return Placed(container, _LOOPBACK, "0.0.0.0")


def has_our_network(info: Mapping[str, Any], hostname: str) -> bool:
    """Return whether an engine's container can stand in this machine's network.

    It cannot where the engine runs in a virtual machine, in another container, without root, or
    with user namespaces.

    Args:
        info: What the engine says of itself.
        hostname: The name of this machine.
    """
    apart = {option.partition(",")[0] for option in info.get("SecurityOptions") or []}
    return (
        info.get("OSType") == "linux"
        and info.get("Name") == hostname
        and apart.isdisjoint({"name=rootless", "name=userns"})
    )


def _pull(image: str) -> None:
    """Pull an image, and tell the user, since it can take a minute.

    A minute of silence is a failure.
    """
    announce(f"pulling {visible(image)}")
    name = parts_of(image)
    engine = docker.from_env(timeout=_PULL_SILENCE_S)
    wanted = name.digest or name.tag or "latest"
    for progress in engine.api.pull(name.repository, tag=wanted, stream=True, decode=True):
        if "error" in progress:
            raise DockerException(progress["error"])
