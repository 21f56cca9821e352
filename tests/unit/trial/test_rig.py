"""Where names are fixed, each row has a broker of its own; TLS ends before it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from upheld.brokers.ahead import Ahead
from upheld.trial import rig as rigs
from upheld.trial.rig import Rig
from upheld.verdicts import MachineLacks


class Ending(SimpleNamespace):
    """Something that notes its end."""

    def close(self) -> None:
        """Note it."""
        self.is_closed = True

    def canary(self, topic: str) -> None:
        """Make no topic."""


def rig(tmp_path: Path, **said: Any) -> Rig:
    """Return a rig on a broker that nobody started."""
    run = SimpleNamespace(run_id="1")
    broker: Any = Ending(bootstrap="shared:1", client={}, is_closed=False)
    parts: dict[str, Any] = {"run": run, "broker": broker, "reading": Ending(), "feed": None}
    return Rig(
        **parts, out=tmp_path, seed=1, time_scale=1.0, histories=tmp_path / "history", **said
    )


@pytest.fixture(autouse=True)
def _no_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no client ask a broker."""
    reading: Any = lambda *_: Ending(settings={}, is_closed=False)  # noqa: E731
    monkeypatch.setattr(rigs, "Reading", reading)
    monkeypatch.setattr(rigs, "Feed", lambda *_: None)


def test_a_row_with_names_of_its_own_has_the_broker_of_the_run(tmp_path: Path) -> None:
    """The end of the row leaves it."""
    shared = rig(tmp_path)
    manifest: Any = SimpleNamespace(has_fixed_names=False)

    assert shared.of_a_row(manifest) is shared
    shared.end_row()
    assert not shared.broker.is_closed


def test_a_row_with_fixed_names_has_a_broker_of_its_own(tmp_path: Path) -> None:
    """No two rows have the same, and what rows learn from each other is shared."""
    logs = list[Path]()

    def another(folder: Path) -> Any:
        logs.append(folder)
        number = len(logs)
        return Ending(
            bootstrap=f"own:{number}", client={}, is_closed=False, ended=lambda _within_s: False
        )

    shared = rig(tmp_path, another=Ahead(another, tmp_path / "logs"))
    manifest: Any = SimpleNamespace(has_fixed_names=True)
    first = shared.of_a_row(manifest)
    second = first.of_a_row(manifest)  # such as a run without a fault beside it

    assert shared.another
    shared.another.rest()
    assert [each.broker.bootstrap for each in (first, second)] == ["own:1", "own:2"]
    assert len(set(logs)) == 3  # one more is ready for the next row
    assert first.answers is second.answers is shared.answers
    second.end_row()
    assert second.broker.is_closed
    assert not first.broker.is_closed
    assert not shared.broker.is_closed


def test_a_cluster_of_somebody_else_takes_no_fixed_names(tmp_path: Path) -> None:
    """The harness starts no broker there."""
    manifest: Any = SimpleNamespace(has_fixed_names=True)

    with pytest.raises(MachineLacks):
        rig(tmp_path).of_a_row(manifest)


def test_an_application_keeps_its_password(tmp_path: Path) -> None:
    """Credentials are those of the run, and the same for each instance."""
    shared = rig(tmp_path)
    cast(Any, shared.run).scratch = tmp_path
    manifest: Any = SimpleNamespace(security="sasl_plaintext")

    security = shared.security_of(manifest)

    assert security
    assert shared.client_of(manifest) == security.client
    assert shared.security_of(manifest) is security
    assert shared.security_of(cast(Any, SimpleNamespace(security="plaintext"))) is None


def test_a_broker_that_is_secured_is_reached_by_its_own_credentials(tmp_path: Path) -> None:
    """No proxy is between, and the application is told what the harness was given."""
    shared = rig(tmp_path)
    cast(Any, shared.broker).client = {"security.protocol": "ssl", "ssl.ca.location": "ca.pem"}
    manifest: Any = SimpleNamespace(security="ssl")

    assert shared.security_of(manifest) is None
    assert shared.client_of(manifest)["ssl.ca.location"] == "ca.pem"
