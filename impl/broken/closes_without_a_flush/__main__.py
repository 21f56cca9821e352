"""Keeps what waits for its next start, and sends nothing when it is closed.

The mistake is to take a graceful close for a quick crash. It shows where the design is not started
again.
"""

from upheld.adapter import serve
from upheld.impl.plain import Batcher, OutputRecord, Plain


class KeepsItAll(Batcher):
    def rest(self) -> list[OutputRecord]:
        return []


class ClosesWithoutAFlush(Plain):
    hello = Plain.hello | {"name": "broken/closes_without_a_flush", "programs": ["batcher"]}
    programs = Plain.programs | {"batcher": KeepsItAll}


serve(ClosesWithoutAFlush())
