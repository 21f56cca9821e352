"""Which broker is chosen, and why, where no broker has to be started to know it."""

import gc
from pathlib import Path
from typing import Any

import pytest

from upheld.brokers import Asked, embedded, open_broker


# Docker leaves it where nobody listens.
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_without_an_engine_auto_is_embedded_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker is given the reason of its choice for every header and report."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")
    opened: list[tuple[object, Path, str]] = []
    run: Any = object()

    def open_embedded(run: object, log_dir: Path, *, why: str) -> str:
        opened.append((run, log_dir, why))
        return "embedded"

    monkeypatch.setattr(embedded, "open_embedded", open_embedded)

    assert open_broker(Asked("auto"), run=run, log_dir=tmp_path) == "embedded"
    gc.collect()
    assert opened == [(run, tmp_path, "no container engine answers")]
