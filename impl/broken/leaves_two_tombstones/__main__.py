"""Sends two tombstones for a row that goes, one of them from its partner.

The mistake is to let both ends of a subscription speak. It shows where rows go.
"""

from upheld.adapter import serve
from upheld.impl.plain import Holdings, OutputRecord, Plain


class Twice(Holdings):
    def changed(self) -> list[OutputRecord]:
        rows = super().changed()
        return rows + [row for row in rows if row.value is None]


class LeavesTwoTombstones(Plain):
    hello = Plain.hello | {"name": "broken/leaves_two_tombstones", "programs": ["holdings"]}
    programs = Plain.programs | {"holdings": Twice}


serve(LeavesTwoTombstones())
