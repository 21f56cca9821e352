"""Commits half of what a chunk changed, and the other half with the next chunk.

The mistake is to commit when a buffer is full, and not where an entry ends. From the first commit
on, an entry shows half of its postings: the others are in the transaction that is open.
"""

from upheld.adapter import serve
from upheld.impl.plain import OutputRecord, Plain


class SplitsATransaction(Plain):
    hello = Plain.hello | {"name": "broken/splits_a_transaction"}
    held: tuple[OutputRecord, ...] = ()  # the other half of the last chunk

    def send(self, rows: list[OutputRecord]) -> None:
        rows = sorted(rows, key=lambda row: row.key or b"")
        half = len(rows) // 2 if self.exactly_once else len(rows)
        super().send([*self.held, *rows[:half]])
        self.held = tuple(rows[half:])


serve(SplitsATransaction())
