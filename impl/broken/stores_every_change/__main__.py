"""Writes a state to the store whenever it changes.

The mistake is to forget to hold back. It shows when an account changes more often than once an
interval.
"""

from upheld.adapter import serve
from upheld.impl.plain import Plain
from upheld.impl.plain.programs import OutputRecord


class StoresEveryChange(Plain):
    hello = Plain.hello | {
        "name": "broken/stores_every_change",
        "capabilities": ["reusable", "sqlite", "redis", "cassandra"],
    }

    def send(self, rows: list[OutputRecord]) -> None:
        super().send(rows)
        if self.store and self.program.unsaved:
            self.store.write(self.program.writes, self.program.unsaved)


serve(StoresEveryChange())
