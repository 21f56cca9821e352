"""The suite of a run: the features that ship, and those of a user's own."""

from typing import Final

OWN: Final[list[str]] = []  # files of features; the plugin fills it before the suite is collected
