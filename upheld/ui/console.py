"""The console, and a word to the user while something is waited for."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console


@contextmanager
def waiting(what: str, after_s: float = 1.0) -> Iterator[None]:
    """Say on standard error what is waited for, if it takes longer than a second.

    Silence would look like a hang.
    """
    saying = threading.Timer(
        after_s, print, [f"upheld: {what} …"], {"file": sys.stderr, "flush": True}
    )
    saying.daemon = True
    saying.start()
    try:
        yield
    finally:
        saying.cancel()


def console(*, stderr: bool = False) -> Console:
    """Return a console that keeps whole words on narrow screens and in files."""
    return Console(stderr=stderr, highlight=False, soft_wrap=True)
