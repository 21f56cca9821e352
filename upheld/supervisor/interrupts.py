"""Ctrl-C, SIGTERM and SIGHUP: each ends a command in the same order.

Each raises a KeyboardInterrupt in the main thread. A second one cuts short what the first one has
begun to end. Blocks that are `held` are never cut: a summary is written whole, and the reaper does
its work.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

Handler = Callable[[int, FrameType | None], Any] | int | None
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class _State:
    depth: int = 0  # of held blocks
    is_due: bool = False  # whether a signal came meanwhile


_state: Final = _State()


def interrupt() -> None:
    """Raise the exception of Ctrl-C."""
    raise KeyboardInterrupt


@contextmanager
def heard(react: Callable[[], object] = interrupt) -> Iterator[None]:
    """React to the three signals within the block; the default is a KeyboardInterrupt.

    Signals that the parent has ignored stay ignored, as `nohup` has them.
    """
    before = hear(react)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def hear(react: Callable[[], object] = interrupt) -> dict[signal.Signals, Handler]:
    """React to the three signals from now on; return the handlers from before.

    Signals that the parent has ignored are left out.
    """

    def take(_: int, __: FrameType | None) -> None:
        if _state.depth:
            _state.is_due = True
        else:
            react()

    before = {}
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, take)
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
