"""A thread of the harness that dies is heard where the row waits."""

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import upheld
from upheld.threads import Heard, begun, forget_failures, raise_failure
from upheld.trial.recorder import Recorder

UNSCALED: Any = SimpleNamespace(_time_scale=1.0)
PACKAGE = Path(upheld.__file__).parent
# Modules that start threads of another kind.
OTHERWISE = {
    "adapter.py": "runs in designs, and stands on nothing",
    "bridge.py": "runs beside an application, and passes its log on",
    "supervisor/contained.py": "runs in what stands for a container, and hands signals on",
    "supervisor/host.py": "keeps what failed itself: a memory that was not measured",
    "sweep/life.py": "hands its exception to the one that waits for the phase",
    "threads.py": "the owner",
}


def died() -> Heard:
    """Return a thread that has died of an exception."""
    thread = Heard(int, "x", name="counting")
    thread.start()
    thread.join()
    return thread


def test_an_exception_is_raised_once() -> None:
    """It names its thread, and blames one row only."""
    died()

    with pytest.raises(ValueError, match="invalid literal") as raised:
        raise_failure()
    raise_failure()

    assert raised.value.__notes__ == ["in the thread counting"]


def test_a_thread_that_ends_well_says_nothing() -> None:
    """There is nothing to raise."""
    thread = Heard(int, "1", name="counting")
    thread.start()
    thread.join()

    raise_failure()


def test_what_is_begun_is_for_the_one_who_asks() -> None:
    """Its result is kept, or else its exception."""
    assert begun(lambda: 7, "counting").result(10) == 7
    with pytest.raises(ValueError, match="invalid literal"):
        begun(lambda: int("x"), "counting").result(10)

    raise_failure()


def test_failures_can_be_forgotten() -> None:
    """They are of a row that has ended."""
    died()
    forget_failures()

    raise_failure()


def test_a_wait_ends_with_the_exception() -> None:
    """A row does not wait for what never comes."""
    died()

    with pytest.raises(ValueError, match="invalid literal"):
        Recorder.wait(UNSCALED, 60.0, lambda: False)


def test_no_thread_is_unheard() -> None:
    """Each thread of the harness is a `Heard` one, but for those with a reason."""
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] not in {"impl", "features", "scaffold"}
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "Thread"
    }

    assert found == OTHERWISE.keys()
