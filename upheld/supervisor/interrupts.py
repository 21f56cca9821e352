"""Ctrl-C, SIGTERM and SIGHUP: each ends a command in the same order.

Each raises a KeyboardInterrupt in the main thread. A second one cuts short what the first one has
begun to end. Blocks that are `held` are never cut: a summary is written whole, and the reaper does
its work. Python runs a handler between any two instructions. Where that is in a finalizer or a
weak reference's callback, the exception is swallowed, so the signal is sent again.
"""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

Handler = Callable[[int, FrameType | None], Any] | int | None
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
AGAIN_S: Final = 0.01  # until a finalizer that has swallowed an interrupt is left


@dataclass
class _State:
    depth: int = 0  # of held blocks
    is_due: bool = False  # whether a signal came meanwhile
    last: int = signal.SIGINT  # of the signals that came


_state: Final = _State()


def interrupt() -> None:
    """Raise the exception of Ctrl-C."""
    raise KeyboardInterrupt


def resend_swallowed(swallowed: "sys.UnraisableHookArgs") -> None:
    """Send a swallowed interrupt again; show any other exception, as Python does."""
    if not issubclass(swallowed.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(swallowed)
        return
    main = threading.main_thread().ident
    again = threading.Timer(AGAIN_S, signal.pthread_kill, (main, _state.last))
    again.daemon = True
    again.start()


@contextmanager
def heard(react: Callable[[], object] = interrupt) -> Iterator[None]:
    """React to the three signals within the block; the default is a KeyboardInterrupt.

    Signals that the parent has ignored stay ignored, as `nohup` has them.
    """
    hook = sys.unraisablehook
    before = hear(react)
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


def hear(react: Callable[[], object] = interrupt) -> dict[signal.Signals, Handler]:
    """React to the three signals from now on; return the handlers from before.

    Signals that the parent has ignored are left out.
    """

    def take(number: int, _: FrameType | None) -> None:
        _state.last = number
        if _state.depth:
            _state.is_due = True
        else:
            react()

    before = {}
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, take)
    sys.unraisablehook = resend_swallowed
    return before


def hear_no_more() -> None:
    """Ignore the three signals: all is done but the end of this process."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def held() -> Iterator[None]:
    """Put off an interrupt until the end of the block.

    Raises:
        KeyboardInterrupt: One of the signals came within the block.
    """
    _state.depth += 1
    try:
        yield
    finally:
        _state.depth -= 1
        if _state.is_due and not _state.depth:
            _state.is_due = False
            raise KeyboardInterrupt
