"""A Redis in a container, where the machine has an engine and no server on PATH."""

import io
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
import redis
from servers import comes_back

from upheld.stores.redis_container import IMAGE_VARIABLE, redis_image
from upheld.stores.redis_server import Redis
from upheld.supervisor.reaper import RUN_LABEL, RunScope
from upheld.verdicts import NotOffered

END_S = 10.0
BUILT = "upheld/redis:test"


@pytest.fixture
def no_server_on_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the path of redis-server, to which PATH does not lead any more."""
    found = shutil.which("redis-server") or ""
    monkeypatch.setenv("PATH", "/nowhere")
    redis_image.cache_clear()
    yield found
    redis_image.cache_clear()


@pytest.fixture
def image(no_server_on_path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make an image of this machine's own server and the libraries it links."""
    try:
        engine = docker.from_env(timeout=END_S)
    except docker.errors.DockerException:
        pytest.skip("no container engine answers")
    if not no_server_on_path:
        pytest.skip("there is no redis-server to make an image of")
    linked = subprocess.run(
        ["ldd", no_server_on_path],
        capture_output=True,
        check=True,
        timeout=END_S,
        env={"PATH": os.defpath},
    )
    files = [word for word in linked.stdout.decode().split() if word.startswith("/")]
    with io.BytesIO() as content:
        with tarfile.open(fileobj=content, mode="w") as tar:
            for file in files:
                tar.add(Path(file).resolve(), file.lstrip("/"))
            tar.add(Path(no_server_on_path).resolve(), "redis-server")
        repository, tag = BUILT.split(":")
        engine.api.import_image_from_data(
            content.getvalue(), repository=repository, tag=tag, changes=["ENV PATH=/"]
        )
    monkeypatch.setenv(IMAGE_VARIABLE, BUILT)


@pytest.mark.usefixtures("image")
def test_it_is_as_good_as_one_on_path(tmp_path: Path) -> None:
    """Every write is told, and a killed server comes back with all it acknowledged.

    No container of it is left.
    """
    with RunScope() as run:
        store = Redis(run, tmp_path, "app")
        comes_back(store)
        design = redis.Redis.from_url(store.address, retry=None, socket_timeout=0.5)
        with store.held():
            with pytest.raises(redis.exceptions.TimeoutError):
                design.hset("app:balances", "ada", "2")
            # It may be done afterwards.
            assert store.rows() == [
                ("balances", "ada", "1"),
                ("balances", "bob", "3"),
            ]
        assert len(containers_of(run)) == 1
        design.close()
        store.close()
        assert containers_of(run) == []


@pytest.mark.usefixtures("image")
def test_it_ends_with_its_run(tmp_path: Path) -> None:
    """A run that does not close its server leaves no container either."""
    with RunScope() as run:
        Redis(run, tmp_path, "app")

    assert containers_of(run) == []


@pytest.mark.usefixtures("no_server_on_path")
def test_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a server and without an engine the store is not offered.

    The reason names both.
    """
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")

    with (
        RunScope() as run,
        pytest.raises(
            NotOffered, match=r"no redis-server on PATH, and no container engine answers"
        ),
    ):
        Redis(run, tmp_path, "app")


def containers_of(run: RunScope) -> list[object]:
    """Return the containers of a run that the engine has."""
    return list(
        docker.from_env().containers.list(all=True, filters={"label": f"{RUN_LABEL}={run.run_id}"})
    )
