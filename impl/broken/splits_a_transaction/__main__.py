"""Commits what a chunk changed in two transactions, half of the keys in each.

The offsets go with the second one. The mistake is to commit when a buffer is full, and not where an
entry ends. It shows where the process dies between the two: with the second transaction open.
"""

from upheld.adapter import serve
from upheld.impl.plain import OutputRecord, Plain


class SplitsATransaction(Plain):
    hello = Plain.hello | {"name": "broken/splits_a_transaction"}

    def send(self, rows: list[OutputRecord]) -> None:
        rows = sorted(rows, key=lambda row: row.key or b"")
        half = len(rows) // 2
        super().send(rows[:half])
        if half and self.exactly_once:
            self.producer.commit_transaction(30)
            self.producer.begin_transaction()
        super().send(rows[half:])


serve(SplitsATransaction())
