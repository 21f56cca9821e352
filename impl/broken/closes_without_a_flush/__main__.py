"""Keeps what waits for its next start, and sends nothing on when it is closed.

Whoever takes a graceful close for a quick crash makes this mistake. It shows where nobody starts it
again.
"""

from upheld.adapter import serve
from upheld.impl.plain import Batcher, Plain, Row


class KeepsItAll(Batcher):
    def rest(self) -> list[Row]:
        return []


class ClosesWithoutAFlush(Plain):
    hello = Plain.hello | {"name": "broken/closes_without_a_flush", "programs": ["batcher"]}
    programs = {"batcher": KeepsItAll}  # noqa: RUF012


serve(ClosesWithoutAFlush())
