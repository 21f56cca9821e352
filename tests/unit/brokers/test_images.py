"""Images by their digest, where the engine gives one."""

from types import SimpleNamespace
from typing import Any

import pytest

from upheld.brokers import engine
from upheld.brokers.engine import ImageName, has_our_network, parts_of, pin_of

DIGEST = f"sha256:{'ab' * 32}"


@pytest.mark.parametrize(
    ("image", "parts"),
    [
        ("redis", ("redis", "", "")),
        ("redis:8", ("redis", "8", "")),
        ("apache/kafka:4.3.1", ("apache/kafka", "4.3.1", "")),
        (f"apache/kafka@{DIGEST}", ("apache/kafka", "", DIGEST)),
        (f"apache/kafka:4.3.1@{DIGEST}", ("apache/kafka", "4.3.1", DIGEST)),
        ("registry:5000/kafka", ("registry:5000/kafka", "", "")),
        ("registry:5000/kafka:4", ("registry:5000/kafka", "4", "")),
        (f"registry:5000/kafka@{DIGEST}", ("registry:5000/kafka", "", DIGEST)),
        ("", ("", "", "")),
        (":", (":", "", "")),
    ],
)
def test_the_parts_of_a_name(image: str, parts: tuple[str, str, str]) -> None:
    """A colon stands before a tag, in a digest, or before a host's port."""
    assert parts_of(image) == ImageName(*parts)


@pytest.mark.parametrize(
    ("digests", "pin"),
    [
        ([f"apache/kafka@{DIGEST}"], f"apache/kafka@{DIGEST}"),
        ([f"mirror/kafka@{DIGEST}", f"apache/kafka@{DIGEST}"], f"apache/kafka@{DIGEST}"),
        ([f"mirror/kafka@{DIGEST}"], f"mirror/kafka@{DIGEST}"),
        ([], "apache/kafka:4.3.1, unpinned, sha256:1234"),
        (None, "apache/kafka:4.3.1, unpinned, sha256:1234"),
    ],
)
def test_an_image_is_reported_by_its_digest(digests: list[str] | None, pin: str) -> None:
    """An image that was built here has no digest, and is called unpinned."""
    image = SimpleNamespace(attrs={"RepoDigests": digests}, short_id="sha256:1234")

    assert pin_of(image, "apache/kafka:4.3.1") == pin


@pytest.mark.parametrize(
    ("image", "asked"),
    [
        ("redis", ("redis", "latest")),
        ("redis:8", ("redis", "8")),
        (f"apache/kafka@{DIGEST}", ("apache/kafka", DIGEST)),
        (f"apache/kafka:4.3.1@{DIGEST}", ("apache/kafka", DIGEST)),
    ],
)
def test_an_image_that_is_named_by_its_digest_is_pulled_by_it(
    monkeypatch: pytest.MonkeyPatch, image: str, asked: tuple[str, str]
) -> None:
    """A tag beside a digest may have moved meanwhile."""
    pulled = []

    def pull(repository: str, *, tag: str, **_: bool) -> list[dict[str, str]]:
        pulled.append((repository, tag))
        return []

    found = SimpleNamespace(api=SimpleNamespace(pull=pull))
    monkeypatch.setattr(engine.docker, "from_env", lambda **_: found)

    engine._pull(image)

    assert pulled == [asked]


@pytest.mark.parametrize(
    ("said", "has"),
    [
        ({}, True),
        ({"SecurityOptions": None}, True),
        ({"Name": "docker-desktop"}, False),
        ({"OSType": "windows"}, False),
        ({"SecurityOptions": ["name=seccomp,profile=default", "name=rootless"]}, False),
        ({"SecurityOptions": ["name=userns"]}, False),
    ],
)
def test_a_container_stands_in_our_network_where_the_engine_is_here(
    said: dict[str, Any], has: bool
) -> None:
    """An engine in a virtual machine or without root has another network."""
    info = {"OSType": "linux", "Name": "here", "SecurityOptions": ["name=cgroupns"], **said}

    assert has_our_network(info, "here") == has
