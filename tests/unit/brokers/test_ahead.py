"""The broker of the next row starts ahead, at most one, and none is left."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from upheld.brokers.ahead import Ahead
from upheld.errors import MachineProblem


class Started:
    """The brokers that were started, each with the folder of its log."""

    def __init__(self, *, may_start: bool = True) -> None:
        self.brokers: list[SimpleNamespace] = []
        self.may_start = threading.Event()
        if may_start:
            self.may_start.set()

    def __call__(self, logs: Path) -> Any:
        """Start one once it may."""
        assert self.may_start.wait(10)
        broker = SimpleNamespace(logs=logs, is_closed=False, has_died=False)
        broker.ended = lambda _within_s: broker.has_died
        broker.close = lambda: setattr(broker, "is_closed", True)
        self.brokers.append(broker)
        return broker


def test_at_most_one_waits(tmp_path: Path) -> None:
    """Each takes 300 MB."""
    started = Started()
    ahead = Ahead(started, tmp_path)

    ahead.prepare()
    ahead.prepare()
    ahead.rest()

    (waiting,) = started.brokers
    taken = [ahead.take(), ahead.take()]
    assert taken == started.brokers
    assert taken[0] is waiting
    assert [broker.logs for broker in started.brokers] == [tmp_path / "row-1", tmp_path / "row-2"]


def test_whoever_takes_waits_for_the_one_that_starts(tmp_path: Path) -> None:
    """A second start beside it would be slower than both."""
    started = Started(may_start=False)
    ahead = Ahead(started, tmp_path)
    ahead.prepare()
    threading.Timer(0.05, started.may_start.set).start()

    assert [ahead.take()] == started.brokers


def test_one_that_died_while_it_waited_is_not_handed_out(tmp_path: Path) -> None:
    """The row would blame the design for it."""
    started = Started()
    ahead = Ahead(started, tmp_path)
    ahead.prepare()
    ahead.rest()
    started.brokers[0].has_died = True

    assert ahead.take() is started.brokers[1]


def test_a_failure_is_the_takers(tmp_path: Path) -> None:
    """It is said where a broker is missed, and the next one is tried anew."""

    def start(_: Path) -> Any:
        raise MachineProblem("There is no room.")

    ahead = Ahead(start, tmp_path)
    ahead.prepare()

    with pytest.raises(MachineProblem, match="There is no room"):
        ahead.take()
    ahead.close()


def test_the_end_of_the_run_ends_the_one_that_waits(tmp_path: Path) -> None:
    """No broker outlives the run, and none is started any more."""
    started = Started(may_start=False)
    ahead = Ahead(started, tmp_path)
    ahead.prepare()
    threading.Timer(0.05, started.may_start.set).start()

    ahead.close()
    ahead.prepare()

    assert [broker.is_closed for broker in started.brokers] == [True]
    with pytest.raises(MachineProblem, match="the run ends"):
        ahead.take()
