"""The design that `new` writes is short, complete and sound; a refusal says what to do."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from streamgate.brokers import Broker, open_broker
from streamgate.designs.manifest import load
from streamgate.designs.new import new
from streamgate.designs.reaper import RunScope
from streamgate.errors import UsageProblem
from streamgate.smoke import smoke


@pytest.fixture(scope="module")
def run() -> Iterator[RunScope]:
    """One run."""
    scope = RunScope()
    yield scope
    scope.close()


@pytest.fixture(scope="module")
def broker(run: RunScope, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One embedded broker for the module."""
    broker = open_broker("embedded", run=run, log_dir=tmp_path_factory.mktemp("broker"))
    yield broker
    broker.close()


def test_new_passes_smoke(tmp_path: Path, run: RunScope, broker: Broker) -> None:
    """Fewer than 117 lines, in both modes, pass every check of smoke."""
    files = new(tmp_path / "My Relay")
    manifest = load(str(tmp_path / "My Relay"))

    checks = smoke(manifest, broker, run, tmp_path / "logs")

    assert manifest.name == "my-relay"
    assert sum(len(file.read_text().splitlines()) for file in files) < 117
    assert [check for check in checks if not check.ok] == []
    assert len(checks) == 2 * 5


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("version = ", "version = '2' #"), ("keeps the protocol", "says version 0.1 at hello")),
        (("programs = [", "programs = ['pulse', "), ("keeps the protocol", "says programs [relay] at hello")),
        (("self.relay(", "len("), ("answers its input with an output", "none visible to read_committed in")),
        (("while not stopping.is_set()", "while True"), ("keeps the protocol", "did not answer stop within")),
        (("serve(Relay())", "print('hi'); serve(Relay())"), ("keeps the protocol", "not JSON: 'hi'")),
    ],
)
def test_smoke_finds(
    tmp_path: Path, run: RunScope, broker: Broker, change: tuple[str, str], says: tuple[str, str]
) -> None:
    """Each fault of an adapter fails its own check, and says what was seen."""
    for file in new(tmp_path / "mine"):
        file.write_text(file.read_text().replace(*change))

    checks = smoke(load(str(tmp_path / "mine")), broker, run, tmp_path / "logs", time_scale=0.08)

    bad = [check for check in checks if not check.ok]
    assert any(says[0] in check.check and says[1] in check.text for check in bad), checks


def test_not_empty(tmp_path: Path) -> None:
    """Nobody's files are written over."""
    (tmp_path / "mine.txt").touch()

    with pytest.raises(UsageProblem, match="is not empty; name a new directory"):
        new(tmp_path)
    with pytest.raises(UsageProblem, match=r"cannot be written: .* name a new directory"):
        new(tmp_path / "mine.txt" / "below")
