"""Commits the offsets of events that wait in its memory alone.

The article's own store without a changelog does so. The mistake is to keep state for a moment only.
It shows where the moment is a crash: what waited never comes.
"""

from typing import Any

from upheld.adapter import serve
from upheld.impl.plain import Batcher, Place, Plain


class InMemory(Batcher):
    def waiting(self) -> dict[Place, Any]:
        return {}


class KeepsWhatWaitsInMemory(Plain):
    hello = Plain.hello | {"name": "broken/keeps_what_waits_in_memory", "programs": ["batcher"]}
    programs = Plain.programs | {"batcher": InMemory}


serve(KeepsWhatWaitsInMemory())
