"""When Python looks for garbage: between histories, seldom in one (ADR 0022)."""

import gc
from typing import Final

YOUNG: Final = 1  # the generations of objects up to this one


def look_seldom() -> None:
    """Look for cycles once in a million new objects.

    A history is tens of thousands of objects that stay until all of them go.
    """
    gc.freeze()
    gc.set_threshold(1_000_000, 50, 100)


def forget_ended() -> None:
    """Free a history that is done with: its views refer to it, and tracebacks do.

    It is tens of megabytes, and the collector looks for it seldom by itself (`look_seldom`). The
    oldest generation stays unlooked at: it has what lives for longer than a history. Objects that
    live now come there too, so this is called between two of them.
    """
    gc.collect(YOUNG)
