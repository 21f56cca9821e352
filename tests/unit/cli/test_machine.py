"""The images of an application are there before a broker starts for it."""

import argparse
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import docker
import pytest
from docker.errors import DockerException, ImageNotFound

from upheld import extras
from upheld.brokers import engine
from upheld.cli import machine
from upheld.cli.machine import demand_early, demand_images, opened_rig, subjects_of
from upheld.errors import UsageProblem
from upheld.protocol.manifest import Manifest, load

DESIGN = """
name = "shop"
version = "1"
modes = ["at_least_once"]
shape = "map"
group = "{application_id}"

[input.orders]
sample = "orders.jsonl"

[output.costs]

[process.app]
image = "shop/orders:4"
command = ["{bootstrap}", "{input.orders}", "{output.costs}"]
"""
OURS = {"OSType": "linux", "Name": "here", "SecurityOptions": []}


class Known(NamedTuple):
    """The images of an engine, and those that are pulled."""

    found: dict[str, str]
    pulled: list[str]


@pytest.fixture
def design(tmp_path: Path) -> Manifest:
    """Return an application of one container."""
    (tmp_path / "orders.jsonl").write_text("{}\n")
    (tmp_path / "design.toml").write_text(DESIGN)
    return load(str(tmp_path))


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Known:
    """Let an engine of this machine answer, whose registry has one image."""
    known = Known({}, [])

    def get(name: str) -> Any:
        if name not in known.found:
            raise ImageNotFound(name)
        return SimpleNamespace(id=known.found[name])

    def pull(name: str) -> None:
        known.pulled.append(name)
        if name != "shop/orders:4":
            raise DockerException("not there")
        known.found[name] = "sha256:ab"

    answering = SimpleNamespace(
        ping=lambda: True, info=lambda: OURS, images=SimpleNamespace(get=get)
    )
    monkeypatch.setattr(docker, "from_env", lambda **_: answering)
    monkeypatch.setattr(socket, "gethostname", lambda: "here")
    monkeypatch.setattr(engine, "_pull", pull)
    return known


def refusal(design: Manifest) -> str:
    """Return why no container of an application can be started."""
    with pytest.raises(UsageProblem) as problem:
        demand_images(design)
    begin = f"{design.file}: `process.app.image` is shop/orders:4, and "
    assert str(problem.value).startswith(begin)
    return str(problem.value).removeprefix(begin)


def test_an_image_that_is_not_there_is_pulled_once(known: Known, design: Manifest) -> None:
    """An image that is there is taken as it is."""
    demand_images(design)
    demand_images(design)

    assert known.pulled == ["shop/orders:4"]


def test_an_image_that_nobody_has_is_refused(
    known: Known, design: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words of the registry stand there."""

    def pull(_: str) -> None:
        raise DockerException("no such repository")

    monkeypatch.setattr(engine, "_pull", pull)

    assert refusal(design) == (
        "a container engine answers but has no shop/orders:4 and cannot pull it (no such "
        "repository)."
    )
    assert known.found == {}


def test_without_the_extra_no_container_is_started(
    design: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence names what installs it."""
    monkeypatch.setitem(extras.MODULES, "container", ("no_such_module",))

    assert refusal(design) == (
        "the Python module no_such_module is not installed (`pip install 'upheld[container]'` "
        "brings it)."
    )


def test_an_engine_has_to_answer(design: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else is asked of it then."""

    def from_env(**_: object) -> Any:
        raise DockerException("no socket")

    monkeypatch.setattr(docker, "from_env", from_env)

    assert refusal(design) == "no container engine answers."


@pytest.mark.usefixtures("known")
def test_an_engine_elsewhere_is_refused(design: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker's address, 127.0.0.1, would be another machine's there."""
    monkeypatch.setattr(socket, "gethostname", lambda: "elsewhere")

    assert refusal(design).startswith("the container engine gives no container the network of this")


def test_an_image_that_prepare_makes_is_looked_for_later(known: Known, design: Manifest) -> None:
    """All others are looked for before a broker starts, also of an earlier release."""
    made = design.model_copy(update={"prepare": ("true",)})
    demand_early([made])
    assert known.pulled == []

    demand_early([made.model_copy(update={"previous": design})])
    assert known.pulled == ["shop/orders:4"]


def test_no_broker_starts_without_the_image(
    design: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the user still looks at the screen."""
    monkeypatch.setitem(extras.MODULES, "container", ("no_such_module",))
    monkeypatch.setattr(machine, "opened_broker", None)
    arguments = argparse.Namespace(seed=1)

    with (
        pytest.raises(UsageProblem, match="is not installed"),
        opened_rig(arguments, [design], tmp_path, None, {}),  # type: ignore[arg-type]
    ):
        pass


@pytest.mark.usefixtures("known")
def test_what_is_judged_is_the_image(design: Manifest) -> None:
    """Unless the design names something else, or consists of several."""
    assert design.application
    process = design.application.process["app"]
    several = {"app": process, "side": process.model_copy(update={"image": None})}
    other = design.application.model_copy(update={"process": several})

    assert subjects_of([design]) == {"shop": "sha256:ab"}
    named = design.model_copy(update={"subject": "orders.jsonl"})
    for each in (named, design.model_copy(update={"application": other})):
        assert subjects_of([each])["shop"] not in {"", "sha256:ab"}
