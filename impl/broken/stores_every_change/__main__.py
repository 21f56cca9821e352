"""Writes a state to the store whenever it changes.

Whoever forgets to hold back makes this mistake. It shows when an account changes more often than
once an interval.
"""

from upheld.adapter import serve
from upheld.impl.plain import Plain
from upheld.impl.plain.programs import Row


class StoresEveryChange(Plain):
    hello = Plain.hello | {
        "name": "broken/stores_every_change",
        "capabilities": ["reusable", "sqlite", "redis", "cassandra"],
    }

    def send(self, rows: list[Row]) -> None:
        super().send(rows)
        if self.store and self.program.unsaved:
            self.store.write(self.program.writes, self.program.unsaved)


serve(StoresEveryChange())
