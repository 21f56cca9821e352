"""Sums the rows of its changelog when it reads its state back.

The mistake is to take a table for a stream. It shows in the first row after a restart.
"""

import json

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Plain
from upheld.impl.plain.programs import Pulse


class AddedUp(Pulse):
    def restore(self, rows: list[Message]) -> None:
        super().restore(rows)
        for row in rows:
            if str(row.topic()).endswith(self.writes):
                self.rows[bytes(row.key() or b"").decode()]["points"] += json.loads(
                    row.value() or ""
                )["points"]


class AddsUpItsChangelog(Plain):
    hello = Plain.hello | {"name": "broken/adds_up_its_changelog"}
    programs = Plain.programs | {"pulse": AddedUp}


serve(AddsUpItsChangelog())
