"""What the tests of ours share: the order of their files, and one run scope and one embedded broker
a session.
"""

import gc
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from upheld.brokers import Broker, open_broker
from upheld.spec.depths import DEFAULT, DEPTHS
from upheld.supervisor.reaper import RunScope

LONGEST = (
    *(
        "test_run.py",
        "test_brokers.py",
        "test_sweep.py",
        "test_reference_submitted.py",
        "test_cassandra.py",
    ),
    *("test_spark_reference.py", "test_gate.py", "test_checks_properties.py", "test_generators.py"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take how much the wrong designs are judged on."""
    parser.addoption(
        "--depth", choices=DEPTHS, default=DEFAULT, help="of tests/mutants: quick, core or full"
    )


def pytest_configure() -> None:
    """A job of a shell that ends in `&` ignores SIGINT and so does all it starts; tests of Ctrl-C
    need it back.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first: files are handed out whole, and a long one at the end would leave
    the other worker idle.
    """
    items.sort(
        key=lambda item: (
            LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST)
        )
    )


def pytest_collection_finish() -> None:
    """Take what was imported and collected out of every later look for garbage: it stays to the
    end.
    """
    gc.collect()
    gc.freeze()


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
