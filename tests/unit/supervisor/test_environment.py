"""An application is given the variables that it inherits, and no other."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from upheld.masking import KNOWN
from upheld.protocol.manifest import Manifest, load
from upheld.supervisor.environment import environment_of, of_a_bridge

ROOT = Path(__file__).parents[3]
RUN: Any = SimpleNamespace(environment={"UPHELD_RUN": "1"})


@pytest.fixture(autouse=True)
def _caller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Call from an environment with a secret that its name does not give away."""
    monkeypatch.setenv("STAGE", "production")
    monkeypatch.setenv("DATABASE", "postgres://fees-9f3c@db/fees")
    monkeypatch.setenv("REGION", "north")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")


def application(**said: Any) -> Manifest:
    """Return the order service, with some fields of its file."""
    orders = load(str(ROOT / "examples" / "orders"))
    assert orders.application
    return orders.model_copy(update={"application": orders.application.model_copy(update=said)})


def test_nothing_but_what_is_inherited_reaches_an_application() -> None:
    """PATH is there without being named, and so is the mark of the run."""
    given = environment_of(application(inherit=("STAGE",), secrets=("DATABASE",)), RUN)

    assert given["STAGE"] == "production"
    assert given["DATABASE"] == "postgres://fees-9f3c@db/fees"
    assert given["UPHELD_RUN"] == "1"
    assert "PATH" in given
    assert not {"REGION", "PYTHONPATH"} & given.keys()


def test_a_bridge_finds_the_harness() -> None:
    """It is a process of the harness, and takes modules from where its caller does."""
    assert of_a_bridge(application(), RUN)["PYTHONPATH"] == "/somewhere"


def test_what_stands_for_a_container_finds_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The application itself is not told where the engine is."""
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:2375")
    orders = application()
    assert orders.application
    process = orders.application.process["app"].model_copy(update={"image": "shop/orders:4"})
    contained = application(process={"app": process})

    assert of_a_bridge(contained, RUN)["DOCKER_HOST"] == "tcp://127.0.0.1:2375"
    assert "DOCKER_HOST" not in environment_of(contained, RUN)
    assert "DOCKER_HOST" not in of_a_bridge(orders, RUN)


def test_a_secret_is_masked_whole() -> None:
    """Its name says nothing, and it is an address without a password."""
    environment_of(application(secrets=("DATABASE",)), RUN)

    assert "9f3c" not in KNOWN.masked("connected to postgres://fees-9f3c@db/fees")
    KNOWN.forget()


def test_a_design_with_an_adapter_has_the_environment_of_its_caller() -> None:
    """Its adapter is a program that its author starts."""
    assert environment_of(load("plain"), RUN)["REGION"] == "north"
