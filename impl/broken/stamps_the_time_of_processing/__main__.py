"""Stamps each output with the clock of its making.

Whoever lets the producer choose a record's timestamp makes this mistake. It shows wherever an
output is looked at.
"""

import time

from upheld.adapter import serve
from upheld.impl.plain import Plain, Row


class StampsTheTimeOfProcessing(Plain):
    hello = Plain.hello | {"name": "broken/stamps_the_time_of_processing"}

    def send(self, rows: list[Row]) -> None:
        super().send(
            [(key, value, headers, time.time_ns() // 1_000_000) for key, value, headers, _ in rows]
        )


serve(StampsTheTimeOfProcessing())
