"""The console, and a word to the user while something is waited for."""

import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from upheld.text import printable, visible


@dataclass
class Manner:
    """The manner in which a command speaks, which its options set once.

    Attributes:
        is_terse: Whether nothing is said of progress, and of what is as it should be.
    """

    is_terse: bool = False


MANNER: Final = Manner()


def announce(text: str) -> None:
    """Say on standard error what begins, unless --quiet is given."""
    if not MANNER.is_terse:
        print(text, file=sys.stderr, flush=True)


@contextmanager
def waiting(what: str, after_s: float = 1.0) -> Iterator[None]:
    """Say on standard error what is waited for, if it takes longer than a second.

    Silence would look like a hang.
    """
    saying = threading.Timer(after_s, announce, [f"upheld: {visible(what)} …"])
    saying.daemon = True
    saying.start()
    try:
        yield
    finally:
        saying.cancel()


class PlainConsole(Console):
    """A console to which every text is data, and no markup or control character.

    It keeps whole words on narrow screens and in files. Only rich itself moves the cursor.
    """

    def __init__(
        self, *, file: IO[str] | None = None, stderr: bool = False, quiet: bool = False
    ) -> None:
        super().__init__(
            file=file,
            stderr=stderr,
            quiet=quiet,
            markup=False,
            emoji=False,
            highlight=False,
            soft_wrap=True,
        )

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Go through the segments of what is printed, each of them printable."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)


def console(*, stderr: bool = False) -> PlainConsole:
    """Return a console for standard output, or for standard error."""
    return PlainConsole(stderr=stderr)


def width() -> int | None:
    """Return the columns of the terminal; None if standard output is none."""
    shown = console()
    return shown.width if shown.is_terminal else None
