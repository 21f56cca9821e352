"""Three signals end a command alike; blocks that are held are not cut."""

import os
import signal
import threading
import weakref
from collections.abc import Iterator

import pytest
from terminals import inherited

from upheld.supervisor.interrupts import SIGNALS, heard, held


@pytest.fixture(autouse=True)
def nothing_ignored() -> Iterator[None]:
    """Hear each signal, also if these tests run under `nohup`."""
    with inherited():
        yield


@pytest.mark.parametrize("number", SIGNALS)
def test_each_signal_is_an_interrupt(number: signal.Signals) -> None:
    """SIGINT, SIGTERM and SIGHUP raise one exception, and are as before afterwards."""
    before = signal.getsignal(number)

    with heard(), pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), number)

    assert signal.getsignal(number) is before


@pytest.mark.parametrize("number", SIGNALS)
def test_what_the_parent_ignores_stays_ignored(number: signal.Signals) -> None:
    """`nohup` keeps a run from the end of its terminal."""
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with heard():
            os.kill(os.getpid(), number)
            assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)


def test_a_held_block_is_whole() -> None:
    """Signals in blocks within each other interrupt at the end of the outer one."""
    done = []

    def works() -> None:
        with held():
            with held():
                os.kill(os.getpid(), signal.SIGTERM)
                done.append("inner")
            os.kill(os.getpid(), signal.SIGHUP)
            done.append("outer")
        done.append("after")

    with heard(), pytest.raises(KeyboardInterrupt):
        works()

    assert done == ["inner", "outer"]


def test_a_held_block_without_a_signal_goes_on() -> None:
    """No interrupt of an earlier block is left."""
    with heard():
        with held():
            pass
        with held():
            done = True

    assert done


def test_a_block_may_react_otherwise() -> None:
    """Lanes take the signals as items of their queue, each of them."""
    told = []

    with heard(lambda: told.append("signal")):
        for number in SIGNALS:
            os.kill(os.getpid(), number)

    assert told == ["signal"] * 3


def test_an_error_in_a_held_block_is_not_lost() -> None:
    """The interrupt comes with the error as its context."""

    def fails() -> None:
        with held():
            os.kill(os.getpid(), signal.SIGINT)
            raise OSError("the disk is full")

    with heard(), pytest.raises(KeyboardInterrupt) as ended:
        fails()

    assert isinstance(ended.value.__context__, OSError)


class Ends:
    """An object whose end is noticed."""


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_in_a_finalizer_is_not_lost(
    number: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    """A swallowed exception is raised again, and no traceback is printed."""

    def ends_within_a_callback() -> None:
        ends = Ends()
        watched = weakref.ref(ends, lambda _: os.kill(os.getpid(), number))
        del ends
        assert watched() is None
        threading.Event().wait(5)

    with heard(), pytest.raises(KeyboardInterrupt):
        ends_within_a_callback()

    assert capfd.readouterr().err == ""


def test_what_else_a_finalizer_raises_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    """Only interrupts are sent again."""

    def fails(_: object) -> None:
        raise ValueError("of a finalizer")

    with heard():
        ends = Ends()
        watched = weakref.ref(ends, fails)
        del ends
        assert watched() is None

    assert "ValueError: of a finalizer" in capfd.readouterr().err
