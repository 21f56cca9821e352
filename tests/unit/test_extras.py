"""A lack is told by the name of its extra, and nothing else needs the extra."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from upheld import extras
from upheld.brokers import Asked, embedded, image, open_broker
from upheld.errors import MachineProblem
from upheld.injectors.clock import WallClock
from upheld.stores import GIVEN, STORES, redis_server
from upheld.supervisor.reaper import RunScope
from upheld.verdicts import MachineLacks

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OF_DEVELOPERS = {"dev", "docs", "fuzz"}  # no command of upheld needs them
COMMANDS = (["list"], ["explain", "G22"], ["schema"], ["lint"], ["run", "--help"])
THEIRS = (  # they import an extra where they begin
    "upheld.brokers.container",
    "upheld.brokers.engine",
    "upheld.stores.redis_container",
    "upheld.stores.redis_server",
)
DEADLINE_S = 60.0
BARE = """
import sys
from upheld import extras
for modules in extras.MODULES.values():
    for name in modules:
        sys.modules[name] = None
from upheld.cli import main
try:
    sys.exit(main(sys.argv[1:]))
finally:
    print(*(name for names in extras.MODULES.values() for name in names if sys.modules[name]))
"""


@pytest.fixture
def lacking(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """Let the modules of an extra be away, and return what its lack says.

    Modules that were imported with them are forgotten meanwhile.
    """
    for name in extras.MODULES[request.param]:
        for known in [each for each in sys.modules if each.startswith((f"{name}.", *THEIRS))]:
            monkeypatch.delitem(sys.modules, known)
        monkeypatch.setitem(sys.modules, name, None)
    return extras.lack(request.param)


def without(extra: str) -> pytest.MarkDecorator:
    """Run a test as if this extra were not installed."""
    return pytest.mark.parametrize("lacking", [extra], indirect=True)


def test_each_extra_of_a_user_is_known() -> None:
    """An extra of pyproject.toml that no sentence names would be found by nobody."""
    assert extras.MODULES.keys() == PROJECT["optional-dependencies"].keys() - OF_DEVELOPERS


def test_what_is_installed_lacks_nothing() -> None:
    """The tests have all that the harness itself imports, but for what few tests need."""
    needed = extras.MODULES.keys() - {"spark", "schemas"}

    assert {extras.lack(extra) for extra in needed} == {""}


@without("redis")
def test_the_sentence_names_module_and_extra(lacking: str) -> None:
    """Quotation marks keep a shell from reading the brackets."""
    assert lacking == (
        "the Python module redis is not installed (`pip install 'upheld[redis]'` brings it)"
    )


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_works_without_any_extra(command: list[str]) -> None:
    """Commands that start nothing import nothing of an extra."""
    ended = subprocess.run(
        [sys.executable, "-c", BARE, *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    assert len(ended.stdout.splitlines()) > 1
    assert ended.stdout.endswith("\n\n")  # none of the modules is there after it


@without("container")
def test_without_the_client_of_an_engine_auto_is_embedded(
    lacking: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The header of the report gives the reason."""
    monkeypatch.setattr(embedded, "open_embedded", lambda *_, why: why)

    with RunScope() as run:
        assert open_broker(Asked("auto"), run=run, log_dir=tmp_path) == lacking


@without("container")
@pytest.mark.parametrize("asked", [Asked("container"), Asked("auto", image="mine")])
def test_a_container_that_is_asked_for_needs_the_client(
    lacking: str, asked: Asked, tmp_path: Path
) -> None:
    """An explicit choice falls back on nothing."""
    with RunScope() as run, pytest.raises(MachineProblem) as told:
        open_broker(asked, run=run, log_dir=tmp_path)

    assert str(told.value) == f"The broker is to be a container, and {lacking}."


@pytest.mark.parametrize("lacking", ["container", "java"], indirect=True)
def test_an_image_is_not_built_without_what_it_holds(
    lacking: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command ends with one sentence and exit code 3."""
    assert image.main([]) == 3
    assert capsys.readouterr().err == f"The image cannot be put together: {lacking}.\n"


@pytest.mark.parametrize(
    ("lacking", "kind"), [("redis", "redis"), ("cassandra", "cassandra")], indirect=["lacking"]
)
def test_a_store_without_its_client_is_not_opened(lacking: str, kind: str, tmp_path: Path) -> None:
    """No server is started for it."""
    with RunScope() as run, pytest.raises(MachineLacks) as told:
        STORES[kind](run, tmp_path, "app", "")

    assert str(told.value) == lacking


@without("redis")
def test_a_store_that_is_given_is_not_reached_without_its_client(lacking: str) -> None:
    """The command ends before a broker starts."""
    with pytest.raises(MachineProblem) as told:
        GIVEN["redis"]("redis://localhost:1")

    assert str(told.value) == f"The store of --store redis cannot be reached: {lacking}."


@without("container")
def test_neither_a_redis_nor_an_engine_s_client(
    lacking: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no server on PATH a container is the only way, and its client is away too."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with RunScope() as run, pytest.raises(MachineLacks) as told:
        redis_server.Redis(run, tmp_path, "app")

    assert str(told.value).endswith(f"there is no redis-server on PATH, and {lacking}")


@without("clock")
def test_no_clock_is_set_without_its_library(lacking: str, tmp_path: Path) -> None:
    """The row is unsupported, and nothing was written for it."""
    with pytest.raises(MachineLacks) as told:
        WallClock(tmp_path / "clock")

    assert str(told.value) == lacking
    assert list(tmp_path.iterdir()) == []
