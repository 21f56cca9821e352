"""Fixtures that the tests of ours share: one run scope and one embedded broker a session, for tests/live."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamgate.brokers import Broker, open_broker
from streamgate.depths import DEFAULT, DEPTHS
from streamgate.designs.reaper import RunScope


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take how much the wrong designs are judged on."""
    parser.addoption("--depth", choices=DEPTHS, default=DEFAULT, help="of tests/broken: quick, core or full")


def pytest_configure() -> None:
    """A job of a shell that ends in `&` ignores SIGINT and so does all it starts; tests of Ctrl-C need it back."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def run_scope() -> Iterator[RunScope]:
    """One run, whose processes and folders end with the session."""
    with RunScope() as run:
        yield run


@pytest.fixture(scope="session")
def broker(run_scope: RunScope, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One embedded broker."""
    log_dir: Path = tmp_path_factory.mktemp("broker")
    broker = open_broker("embedded", run=run_scope, log_dir=log_dir)
    yield broker
    broker.close()
