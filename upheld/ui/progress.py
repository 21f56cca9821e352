"""The progress of long work: a live line on a terminal, elsewhere a line a piece.

The live line says how many pieces are done, with which results, the time left, and what is under
way for how long. Messages stand above it. Elsewhere, in a file or in CI, each piece is a line when
it is done, and the time left is said every half minute.

While a test runs, pytest puts files of its own in the place of the standard streams. So the console
gets a descriptor of its own. Printing never fails: if nobody reads any more, `is_unread` says it.
"""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from upheld.text import printable, visible
from upheld.threads import Heard
from upheld.ui.console import MANNER, PlainConsole
from upheld.ui.streams import Outlet, Stream
from upheld.ui.timeleft import as_text

EVERY_S = 30.0
REFRESHED_HZ = 1.0  # the seconds that a piece has taken are whole ones
UNREAD = "Nobody reads any more what is printed, so that nothing more was begun."
MOST_NAMED = 4  # pieces under way; the others are counted


@dataclass(frozen=True)
class _Piece:
    name: str
    began_s: float


class Progress:
    """The progress of one command; silent until it begins, and after it ends."""

    def __init__(
        self,
        console: Console,
        *,
        every_s: float = EVERY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.console = apart(console)
        self.is_terse = MANNER.is_terse
        self.is_live = (
            self.console.is_interactive and not self.is_terse and not os.environ.get("CI")
        )
        self.total = 0
        self.done = 0
        self.counts = Counter[str]()
        self._seconds_left: Callable[[], float | None] = lambda: None
        self._every_s = every_s
        self._clock = clock
        self._under_way: dict[int, _Piece] = {}  # by lane
        self._lock = threading.RLock()
        self._live: Live | None = None
        self._over: threading.Event | None = None

    @property
    def is_unread(self) -> bool:
        """Whether the reader of a pipe, such as a pager or `head`, has gone."""
        outlet = getattr(self.console.file, "outlet", None)
        return isinstance(outlet, Outlet) and outlet.is_unread

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def begin(self, total: int, seconds_left: Callable[[], float | None]) -> None:
        """Show the number of pieces to be done, and the time that they take.

        Args:
            total: The number of pieces.
            seconds_left: Estimates the seconds until the last piece is done; None if it cannot.
        """
        self.end()
        with self._lock:
            self.total = total
            self.done = 0
            self.counts.clear()
            self._seconds_left = seconds_left
        if self.console.quiet or self.is_terse:
            return
        if self.is_live:
            self._live = Live(
                console=self.console,
                get_renderable=self._line,
                refresh_per_second=REFRESHED_HZ,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start(refresh=True)
        else:
            self._over = threading.Event()
            Heard(self._repeat, self._over, name="progress").start()

    def started(self, name: str, lane: int = 1) -> None:
        """Show that a piece is under way."""
        with self._lock:
            self._under_way[lane] = _Piece(visible(name), self._clock())
        self._refresh()

    def stopped(self, lane: int = 1) -> None:
        """Show that the lane's piece is under way no more, and was not done."""
        with self._lock:
            self._under_way.pop(lane, None)

    def finished(
        self, text: str, result: str, *, style: str = "", lane: int = 1, is_quiet: bool = False
    ) -> None:
        """Count a piece by its result, and print its line.

        Args:
            text: The line, after the result.
            result: Its result, by which it is counted.
            style: The style of the result.
            lane: The lane that did it.
            is_quiet: Print no line on a terminal, nor with --quiet.
        """
        with self._lock:
            self.stopped(lane)
            self.done += 1
            self.counts[result] += 1
            head = f"[{self.done}/{self.total}] "
        if not (is_quiet and (self.is_live or self.is_terse)):
            self.console.print(Text.assemble(head, (result, style), f" {visible(text)}"))
        self._refresh()

    def skip(self, count: int) -> None:
        """Count so many pieces less: they will not be done."""
        with self._lock:
            self.total -= count
        self._refresh()

    def message(self, text: str, style: str | None = None) -> None:
        """Print a text of its own, above the live line."""
        self.console.print(printable(text), style=style, markup=False)

    def end(self) -> None:
        """Clear the live line, and give the terminal back as it was."""
        if self._over:
            self._over.set()
        if self._live:
            live = self._live
            self._live = None
            live.stop()

    def left(self) -> str:
        """Return the time left in words; empty if it is unknown, or all is done."""
        seconds = self._seconds_left() if self.done < self.total else None
        return "" if seconds is None else f"{as_text(seconds)} left"

    def under_way(self) -> str:
        """Return the names of the pieces under way, with the seconds of each."""
        with self._lock:
            pieces = [self._under_way[lane] for lane in sorted(self._under_way)]
        now_s = self._clock()
        named = [f"{piece.name} {now_s - piece.began_s:.0f} s" for piece in pieces[:MOST_NAMED]]
        others = len(pieces) - len(named)
        return ", ".join([*named, f"{others} others"] if others > 0 else named)

    def _line(self) -> Text:
        """Return the live line.

        Its least important part is at its end, where a narrow terminal cuts it.
        """
        self._fit()
        with self._lock:
            counts = ", ".join(f"{number} {result}" for result, number in self.counts.items())
        parts = [counts, self.left(), self.under_way()]
        text = f"[{self.done}/{self.total}] {'; '.join(filter(None, parts))}"
        return Text(text, no_wrap=True, overflow="ellipsis")

    def _fit(self) -> None:
        """Take the terminal's width from the terminal.

        pytest has files of its own in the place of the streams.
        """
        try:
            columns = os.get_terminal_size(self.console.file.fileno()).columns
        except (OSError, ValueError):
            return
        if columns:
            self.console.width = columns

    def _refresh(self) -> None:
        if live := self._live:
            live.refresh()

    def _repeat(self, over: threading.Event) -> None:
        """Say the time left every half minute."""
        while not over.wait(self._every_s):
            parts = [f"[{self.done}/{self.total}]", self.left(), self.under_way()]
            said = "; ".join(filter(None, parts[1:]))
            if said:
                self.message(f"{parts[0]} {said}")


def apart(console: Console) -> Console:
    """Return the console on a descriptor of its own.

    If the console writes to no descriptor, return the console itself.
    """
    try:
        outlet = Outlet.apart(console.file)
    except (OSError, ValueError, AttributeError):
        return console
    return PlainConsole(file=Stream(outlet, console.file), quiet=console.quiet)
