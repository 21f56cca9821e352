"""Commits the first half of what a chunk changed, by key, in one transaction; the other half and
the offsets in the next.

Whoever commits when a buffer is full, and not where an entry ends, makes this mistake. It shows
where the process dies between the two: with the second transaction open.
"""

from upheld.adapter import serve
from upheld.impl.plain import Plain, Row


class SplitsATransaction(Plain):
    hello = Plain.hello | {"name": "broken/splits_a_transaction"}

    def send(self, rows: list[Row]) -> None:
        rows, half = sorted(rows, key=lambda row: row[0]), len(rows) // 2
        super().send(rows[:half])
        if half and self.exactly_once:
            self.producer.commit_transaction(30)
            self.producer.begin_transaction()
        super().send(rows[half:])


serve(SplitsATransaction())
