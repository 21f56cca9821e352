"""Stamps each output with the clock of its making.

The mistake is to let the producer choose a record's timestamp. It shows wherever an output is
looked at.
"""

import time

from upheld.adapter import serve
from upheld.impl.plain import OutputRecord, Plain


class StampsTheTimeOfProcessing(Plain):
    hello = Plain.hello | {"name": "broken/stamps_the_time_of_processing"}

    def send(self, rows: list[OutputRecord]) -> None:
        now_ms = time.time_ns() // 1_000_000
        super().send([row._replace(timestamp_ms=now_ms) for row in rows])


serve(StampsTheTimeOfProcessing())
