"""The design that `new` writes is complete and sound on a real broker."""

from pathlib import Path

from upheld.brokers import Broker
from upheld.protocol.manifest import load
from upheld.runner.smoke import Site, smoke
from upheld.scaffold import new
from upheld.supervisor.reaper import RunScope


def test_new_passes_smoke(tmp_path: Path, run_scope: RunScope, broker: Broker) -> None:
    """In both modes it passes every check of smoke."""
    new(tmp_path / "My Relay")
    manifest = load(str(tmp_path / "My Relay"))

    checks = smoke(manifest, Site(broker, run_scope, tmp_path / "logs"))

    assert manifest.name == "my-relay"
    assert [check for check in checks if not check.ok] == []
    assert len(checks) == 2 * 5
