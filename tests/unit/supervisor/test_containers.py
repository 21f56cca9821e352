"""The containers of an instance are struck through their engine."""

import os
import subprocess
from pathlib import Path

import pytest
from engines import Engine

from upheld.supervisor import containers
from upheld.supervisor.containers import Containers, first_line
from upheld.supervisor.kin import Kin
from upheld.verdicts import HarnessError


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Return an engine with a running, a paused and an ended container.

    Their processes are known while a test runs, and not to the tests after it.
    """
    monkeypatch.setattr(containers, "KIN", Kin())
    made = Engine(runs="running", rests="paused", ended="exited")
    monkeypatch.setattr(containers, "client", lambda: made)
    return made


def test_a_pause_strikes_what_runs(engine: Engine) -> None:
    """A container that is paused already is left alone, and so is an ended one."""
    Containers("tag").pause()

    assert engine.asked == [("pause", "runs")]
    assert engine.labels == {"upheld.instance=tag"}


def test_what_was_paused_goes_on(engine: Engine) -> None:
    """A container that runs is left alone."""
    Containers("tag").resume()

    assert engine.asked == [("unpause", "rests")]


def test_a_kill_leaves_no_container(engine: Engine) -> None:
    """A container that the engine was still making is looked for, too."""
    engine.late = "late"
    Containers("tag").kill()

    assert engine.states == {}
    assert [each for what, each in engine.asked if what == "remove"] == [
        "runs",
        "rests",
        "ended",
        "late",
    ]


def test_a_container_that_stays_is_told(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The design is not responsible for an engine that does not obey."""
    engine.refused["remove"] = 409
    monkeypatch.setattr(containers, "_DEADLINE_S", 0.05)

    with pytest.raises(HarnessError, match="did not remove runs, rests, ended within"):
        Containers("tag").kill()


def test_a_container_that_has_gone_meanwhile_is_passed_over(engine: Engine) -> None:
    """Any other refusal of the engine is told in its words."""
    engine.refused["pause"] = 404
    Containers("tag").pause()
    engine.refused["pause"] = 500

    with pytest.raises(HarnessError, match=r"did not pause .* \(pause is refused\)"):
        Containers("tag").pause()


def test_processes_of_this_machine_are_known(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of another machine, whose number is a stranger's here, are not."""
    with subprocess.Popen(["sleep", "60"]) as child:
        engine.first_process = os.getpid()
        assert Containers("tag").pids() == []

        own = Path("/proc/self/cgroup").read_text()
        monkeypatch.setattr(engine, "states", {own: "running"})
        found = Containers("tag").pids()
        child.kill()

    assert {os.getpid(), child.pid} <= set(found)


def test_a_container_is_inspected_once(engine: Engine) -> None:
    """Its first process stays the same, and the doctor looks twenty times a second."""
    known = Containers("tag")
    known.pids()
    known.pids()

    assert engine.asked == [("inspect", "runs"), ("inspect", "rests")]


def test_the_words_of_an_engine_are_one_line() -> None:
    """An engine may say a lot, or nothing."""
    assert first_line(ValueError("no such image\nmore")) == "no such image"
    assert first_line(ValueError("")) == "no reason given"
