"""What a person reads on a terminal besides reports: a console, and a word while something is
waited for.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console


@contextmanager
def waiting(what: str, after_s: float = 1.0) -> Iterator[None]:
    """Say on stderr what is waited for, if it takes longer than a second: silence looks like a
    hang.
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
    """A console that keeps whole words on narrow screens and in files."""
    return Console(stderr=stderr, highlight=False, soft_wrap=True)
