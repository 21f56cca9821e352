"""Share among our tests their order, a profile of hypothesis, and a broker.

One run scope and one embedded broker serve a session.
"""

import gc
import signal
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import not_run
import pytest
from hypothesis import HealthCheck, settings

from upheld.brokers import Asked, Broker, open_broker
from upheld.masking import KNOWN
from upheld.spec.depths import DEFAULT, DEPTHS
from upheld.supervisor.reaper import RunScope

settings.register_profile(
    "checks",
    max_examples=40,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("checks")

TESTS = Path(__file__).parent / "tests"
LONGEST = (
    "live/test_run.py",
    "live/test_brokers.py",
    "live/test_sweep.py",
    "live/test_reference_submitted.py",
    "live/test_cassandra.py",
    "unit/impl/test_spark_reference.py",
    "unit/runner/test_plugin.py",
    "unit/checks/test_checks_properties.py",
    "unit/generators/test_tables.py",
)

NEED_SPARK = ("unit/impl/test_spark_reference.py", "unit/impl/test_standby.py")
HAS_SPARK = find_spec("pyspark") is not None and find_spec("pyarrow") is not None

NEED_SCHEMAS = (
    "unit/generators/schemas/test_avro.py",
    "unit/generators/schemas/test_json_schema.py",
    "unit/generators/schemas/test_made.py",
    "unit/registry/test_client.py",
)
HAS_SCHEMAS = all(map(find_spec, ("fastavro", "rstr", "httpx2", "authlib")))

collect_ignore = [str(TESTS / name) for name in NEED_SPARK if not HAS_SPARK]
collect_ignore += [str(TESTS / name) for name in NEED_SCHEMAS if not HAS_SCHEMAS]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the depth of wrong designs and examples, and a turn of examples and twins."""
    parser.addoption(
        "--depth",
        choices=DEPTHS,
        default=DEFAULT,
        help="of tests/mutants and tests/examples: quick, core or full",
    )
    parser.addoption(
        "--slice",
        default="",
        help="of tests/twins and tests/examples, as in 3/8: which of them have their turn",
    )


def pytest_configure() -> None:
    """Let tests interrupt processes by Ctrl-C.

    A job of a shell that ends in `&` ignores SIGINT, and so does every process that it starts.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first.

    Files are handed out whole, and a long one at the end would leave the other worker idle.
    """
    ranks = {TESTS / name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path, len(ranks)))


def pytest_collection_finish() -> None:
    """Freeze the objects of the collection, which live to the end.

    No later collection of garbage looks at them then.
    """
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Keep the reasons of the skipped tests for the last line of the whole run."""
    not_run.keep(terminalreporter.stats.get("skipped", []))


@pytest.fixture(autouse=True)
def _forget_secrets() -> Iterator[None]:
    """Forget the secrets of each test, which would be masked in the next one."""
    yield
    KNOWN.forget()


@pytest.fixture(scope="session")
def run_scope() -> Iterator[RunScope]:
    """Yield a run, whose processes and folders end with the session."""
    with RunScope() as run:
        yield run


@pytest.fixture(scope="session")
def broker(run_scope: RunScope, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Yield an embedded broker."""
    log_dir: Path = tmp_path_factory.mktemp("broker")
    broker = open_broker(Asked("embedded"), run=run_scope, log_dir=log_dir)
    yield broker
    broker.close()
