"""Commits the offsets of events that wait in its memory alone, as the article's own store without a
changelog does.

Whoever keeps state for a moment only makes this mistake. It shows where the moment is a crash: what
waited never comes.
"""

from typing import Any

from upheld.adapter import serve
from upheld.impl.plain import Batcher, Plain


class InMemory(Batcher):
    def waiting(self) -> dict[str, Any]:
        return {}


class KeepsWhatWaitsInMemory(Plain):
    hello = Plain.hello | {"name": "broken/keeps_what_waits_in_memory", "programs": ["batcher"]}
    programs = {"batcher": InMemory}  # noqa: RUF012


serve(KeepsWhatWaitsInMemory())
