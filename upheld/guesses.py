"""Guesses at misspelt names, for the sentences that refuse them."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Ask for the known name that is most like this one; empty if none is.

    The question begins with a space, so that it follows a sentence.
    """
    found = get_close_matches(name, sorted(known), n=1)
    return f" Did you mean {found[0]}?" if found else ""
