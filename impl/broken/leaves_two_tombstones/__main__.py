"""Sends a tombstone from the old partner of a row that goes, and another one from the row itself.

Whoever lets both ends of a subscription speak makes this mistake. It shows where rows go.
"""

from upheld.adapter import serve
from upheld.impl.plain import Holdings, Plain, Row


class Twice(Holdings):
    def changed(self) -> list[Row]:
        rows = super().changed()
        return rows + [row for row in rows if row[1] is None]


class LeavesTwoTombstones(Plain):
    hello = Plain.hello | {"name": "broken/leaves_two_tombstones", "programs": ["holdings"]}
    programs = {"holdings": Twice}  # noqa: RUF012


serve(LeavesTwoTombstones())
