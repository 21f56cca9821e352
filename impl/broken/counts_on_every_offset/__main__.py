"""Refuses to start from a table in which offsets are missing.

It takes the rows for lost. The mistake is to expect no compacted topic. It shows at the first
restart after the cleaner.
"""

from confluent_kafka import Message

from upheld.adapter import Failed, serve
from upheld.impl.plain import Plain


class CountsOnEveryOffset(Plain):
    hello = Plain.hello | {"name": "broken/counts_on_every_offset"}

    def table(self, role: str) -> list[Message]:
        rows = super().table(role)
        ends = {row.partition(): row.offset() or 0 for row in rows}
        if missing := sum(ends.values()) + len(ends) - len(rows):
            raise Failed("storage", f"{missing} rows of {role} are lost")
        return rows


serve(CountsOnEveryOffset())
