"""A container image of this machine's own Python, put together without a network.

It holds the interpreter, its standard library, confluent-kafka, and the C libraries that all of
them link, at the places where they are here. There is no shell in it.
"""

import io
import os
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import confluent_kafka
import docker
import pytest

END_S: Final = 60.0
PACKAGES: Final = "/packages"
LEFT_OUT: Final = {
    "__pycache__",
    "config-3",
    "dist-packages",
    "ensurepip",
    "idlelib",
    "lib2to3",
    "site-packages",
    "test",
    "tkinter",
}


def engine() -> "docker.DockerClient":
    """Return a client of the machine's engine; the test is skipped if none answers."""
    try:
        made = docker.from_env(timeout=END_S)
        made.ping()
    except docker.errors.DockerException:
        pytest.skip("no container engine answers")
    return made


def make(
    client: "docker.DockerClient", name: str, apps: Mapping[str, Path], changes: Iterable[str] = ()
) -> str:
    """Import an image whose entrypoint is Python; return its name.

    Args:
        client: A client of the engine.
        name: A name with a tag.
        apps: What Python may run: the name of a file in the root of the image, and the file.
        changes: Further instructions, as a Dockerfile has them.
    """
    python = str(Path(sys.executable).resolve())
    with io.BytesIO() as content:
        with tarfile.open(fileobj=content, mode="w") as tar:
            for file, place in _files(python).items():
                tar.add(file, place.lstrip("/"), filter=_readable)
            for place, app in apps.items():
                tar.add(app, place, filter=_readable)
            folder = tarfile.TarInfo("tmp")
            folder.type = tarfile.DIRTYPE
            folder.mode = 0o1777
            tar.addfile(folder)
        repository, _, tag = name.rpartition(":")
        client.api.import_image_from_data(
            content.getvalue(),
            repository=repository,
            tag=tag,
            changes=[
                f"ENV PYTHONHOME={sys.base_prefix}",
                f"ENV PYTHONPATH={PACKAGES}",
                "ENV PYTHONDONTWRITEBYTECODE=1",
                "ENV PYTHONUNBUFFERED=1",
                f'ENTRYPOINT ["{python}"]',
                *changes,
            ],
        )
    return name


def _files(python: str) -> Mapping[str, str]:
    """Return the files of the image, and where each stands in it."""
    stdlib = Path(sysconfig.get_path("stdlib"))
    package = Path(confluent_kafka.__file__).parent
    own = dict[str, str]()
    for each in _below(stdlib):
        own[str(each)] = str(each)
    for folder in (package, package.with_name("confluent_kafka.libs")):
        for each in _below(folder):
            own[str(each)] = f"{PACKAGES}/{each.relative_to(package.parent)}"
    linked = subprocess.run(
        ["ldd", python, *(name for name in own if ".so" in name)],
        capture_output=True,
        text=True,
        check=False,
        timeout=END_S,
        env={"PATH": os.defpath},
    ).stdout.split()
    libraries = {word for word in linked if word.startswith("/") and not word.endswith(":")}
    there = {each for each in libraries if str(package.parent) not in each}
    return own | {str(Path(each).resolve()): each for each in sorted(there)} | {python: python}


def _below(folder: Path) -> Iterator[Path]:
    """Go through the files below a folder that a service needs."""
    for at, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(tuple(LEFT_OUT))]
        yield from (Path(at, name) for name in files)


def _readable(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return an entry of root's that everybody can read."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode |= 0o444
    return entry
