"""A tick asks the instances; an input is drained at its end."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from attempts import Attempt, timeless

from upheld.history.events import Offsets
from upheld.protocol.messages import OffsetsMean
from upheld.trial import monitor
from upheld.trial.monitor import Monitor


@pytest.fixture
def attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Attempt:
    """Make an attempt in which time passes by sleeps alone."""
    return timeless(tmp_path, monkeypatch)


class Asked:
    """Probes and instances that put down what they are asked."""

    def __init__(self, attempt: Attempt) -> None:
        self.log: list[str] = []
        self.committed: Offsets | None = {"trial-relay-input-0": 5, "trial-relay-input-1": 5}
        self.decided = True
        probes: Any = SimpleNamespace(
            query=self._query,
            ask_lag=lambda _: self.log.append("lag"),
            observe=lambda _: self.log.append("observe"),
            offsets=lambda _, **__: self.committed,
            all_decided=lambda _: self.decided,
        )
        instances: Any = SimpleNamespace(demand_alive=lambda _: self.log.append("alive"))
        self.monitor = Monitor(attempt.recorder, probes, instances)

    def _query(self, application: Any, key: str) -> None:
        application.asked += 1
        self.log.append(key)


@pytest.fixture
def asked(attempt: Attempt) -> Asked:
    """Monitor the attempt."""
    return Asked(attempt)


def test_a_tick_looks_for_the_dead_first(attempt: Attempt, asked: Asked) -> None:
    """Keys are asked for in turns, and the lag when it is due."""
    application = attempt.application()
    asked.monitor.tick(application)
    application.keys = ["one", "two"]
    application.lag_due_ms = attempt.recorder.now_ms + 50
    asked.monitor.tick(application)
    attempt.recorder.wait(0.1, lambda: False)
    asked.monitor.tick(application)

    assert asked.log == ["alive", "alive", "one", "alive", "two", "lag"]


class Drained(NamedTuple):
    """An input that ends at 5 for its readers, and whether it counts as drained."""

    committed: int | None
    decided: bool  # whether no transaction is open on the outputs
    whole: bool
    input_alone: bool


@pytest.mark.parametrize(
    "case",
    [
        Drained(committed=5, decided=True, whole=True, input_alone=True),
        Drained(committed=5, decided=False, whole=False, input_alone=True),
        Drained(committed=4, decided=True, whole=False, input_alone=False),
        Drained(committed=None, decided=True, whole=False, input_alone=False),
    ],
)
def test_an_input_is_drained_at_its_visible_end(
    attempt: Attempt, asked: Asked, case: Drained
) -> None:
    """No transaction may be open on the outputs, unless only the input counts."""
    application = attempt.application()
    application.group = "group"
    application.input.ends = {"trial-relay-input-0": 5}
    asked.committed = None if case.committed is None else {"trial-relay-input-0": case.committed}
    asked.decided = case.decided

    assert asked.monitor.is_drained(application) is case.whole
    assert asked.monitor.is_drained(application, outputs_too=False) is case.input_alone


def test_without_a_group_the_outputs_say_it(attempt: Attempt, asked: Asked) -> None:
    """An input with no records is settled by no outputs, once they were looked at."""
    application = attempt.application()

    assert asked.monitor.is_drained(application)
    assert asked.log == ["observe"]


class Told(NamedTuple):
    """The word of a group and of outputs on an input that ends at 5."""

    progress: OffsetsMean
    is_settled: bool
    committed: int
    is_drained: bool


@pytest.mark.parametrize(
    "told",
    [
        Told("group", is_settled=False, committed=5, is_drained=True),
        Told("group-leads", is_settled=False, committed=5, is_drained=False),
        Told("group-leads", is_settled=True, committed=4, is_drained=False),
        Told("group-leads", is_settled=True, committed=5, is_drained=True),
        Told("none", is_settled=False, committed=5, is_drained=False),
        Told("none", is_settled=True, committed=0, is_drained=True),
    ],
)
def test_offsets_count_for_what_they_say(
    attempt: Attempt, asked: Asked, monkeypatch: pytest.MonkeyPatch, told: Told
) -> None:
    """Those that lead ask for the outputs too, and information counts for nothing."""
    view = SimpleNamespace(is_settled=told.is_settled)
    monkeypatch.setattr(monitor, "view_of", lambda *_: view)
    application = attempt.application()
    application.group = "group"
    application.progress = told.progress
    application.input.ends = {"trial-relay-input-0": 5}
    asked.committed = {"trial-relay-input-0": told.committed}

    assert asked.monitor.is_drained(application) is told.is_drained
