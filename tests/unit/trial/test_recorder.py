"""The history of one attempt, and its clock."""

from pathlib import Path

import pytest
from attempts import Attempt, Time, timeless

from upheld.families import Family
from upheld.history.events import Instance, Mark
from upheld.history.marks import Happening
from upheld.protocol.messages import Ready
from upheld.trial.recorder import Recorder


@pytest.fixture
def attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Attempt:
    """An attempt in which time passes by sleeps alone."""
    return timeless(tmp_path, monkeypatch)


def test_a_deadline_scales(attempt: Attempt) -> None:
    """A wait of one second takes three at a time scale of three."""
    patient = Recorder(attempt.history, time_scale=3.0)

    assert not patient.wait(1.0, lambda: False)
    assert 3_000 <= patient.now_ms <= 3_100


def test_a_wait_ends_when_its_condition_holds(attempt: Attempt) -> None:
    """The condition is asked before the deadline is looked at."""
    assert attempt.recorder.wait(-1.0, lambda: True)
    assert attempt.recorder.wait(9.0, lambda: attempt.recorder.now_ms >= 100)
    assert attempt.recorder.now_ms < 200


def test_a_mark_has_the_family_and_the_words_of_its_code(attempt: Attempt) -> None:
    """Words of its own replace the usual ones; the code stays."""
    attempt.recorder.mark(Happening.DISK_WIPED, files=3)
    attempt.recorder.mark(Happening.WORKER_KILLED, "another worker is killed")

    usual, own = attempt.history.of(Mark)
    assert (usual.code, usual.fault, usual.evidence) == (Family.DISK, "wiped", {"files": 3})
    assert (own.happening, own.fault) == (Happening.WORKER_KILLED, "another worker is killed")


def test_a_start_is_recorded_with_the_answer(attempt: Attempt) -> None:
    """Group, table and topics of an instance stand in the event of its `ready`."""
    ready = Ready(consumer_group="group", table="table", internal_topics=("changes",))

    attempt.recorder.happened(attempt.application(), "a", "ready", ready=ready)

    (event,) = attempt.history.of(Instance)
    assert (event.application, event.consumer_group) == ("relay", "group")
    assert (event.table, event.internal_topics) == ("table", ("changes",))


def test_a_time_of_the_clock_is_put_in_the_attempt(attempt: Attempt) -> None:
    """A request that the proxy has seen is timed from the begin of the attempt."""
    assert attempt.recorder.ms_of(Time().now_s + 1.5) == 1_500
