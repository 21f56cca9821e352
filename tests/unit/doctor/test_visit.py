"""A visit tells an application the names of a run, and waits for its outputs."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attempts import Time

from upheld.bridge import Bridge
from upheld.commands import CREDENTIALS
from upheld.doctor import visit
from upheld.doctor.visit import Patience, names_of
from upheld.protocol.manifest import load
from upheld.protocol.subject import PLACEHOLDERS

GIVEN = ("bootstrap", "application_id", "instance", "state_dir", "durable_dir")
ORDERS = Path(__file__).parents[3] / "examples" / "orders"
CHECKPOINTS = Path(__file__).parents[2] / "support" / "applications" / "checkpoints"


def test_each_placeholder_is_filled_in(tmp_path: Path) -> None:
    """A run and a visit fill in the same ones."""
    temporary = Path(tempfile.gettempdir())
    names = names_of(load(str(ORDERS)), "doctor-1", "127.0.0.1:1", tmp_path, temporary)
    started = {
        "topics": {"orders": names["input.orders"], "costs": names["output.costs"]},
        "parameters": {},
        **{name: names[name] for name in GIVEN},
        "session_timeout_ms": int(names["session_timeout_ms"]),
        "transaction_timeout_ms": int(names["transaction_timeout_ms"]),
        "mode": names["mode"],
    }
    of_a_run = Bridge(ORDERS / "design.toml")._names(started)

    every = {*PLACEHOLDERS, "input.orders", "output.costs"}
    of_each_start = {"port", "process", "rendered", *CREDENTIALS}
    assert names.keys() == every - of_each_start
    alike = of_a_run.keys() - of_each_start - {"python"}
    assert {name: names[name] for name in alike} == {name: of_a_run[name] for name in alike}


class Resting(visit._Visit):
    """A visit to an application of which nothing but its outputs is seen."""

    def __init__(self, end: Callable[[], int]) -> None:
        ends = {0: 0, 1: 0}
        self.manifest = load(str(CHECKPOINTS))
        assert self.manifest.application
        self.subject = self.manifest.application
        self.patience = Patience(start_s=8)
        self.outputs = {"costs": "doctor-1-costs"}
        self.outputs_end = [(ends, ends)]
        running: Any = SimpleNamespace(running=SimpleNamespace(poll=lambda: None))
        self.processes = [running]
        reading: Any = SimpleNamespace(ends=lambda *_: (ends | {0: end()}, ends | {0: end()}))
        self.reading = reading


def test_outputs_are_waited_for_if_no_offsets_tell_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """New ones have to come each time, and to be still for as long as one may take."""
    clock = Time()
    monkeypatch.setattr(visit, "time", clock)
    began_s = clock.now_s
    visiting = Resting(lambda: 40 * (clock.now_s >= began_s + 3))

    assert visiting._drained()
    assert clock.now_s == pytest.approx(began_s + 3 + 2.1, abs=0.2)
    assert not visiting._drained()
    assert clock.now_s == pytest.approx(began_s + 3 + 2.1 + 8 + 2.1, abs=0.4)
