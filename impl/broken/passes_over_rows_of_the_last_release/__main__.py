"""Reads none of the rows that the release before it wrote.

The mistake is a new format of the state, by which an older row counts as none. It shows after a
release: the sums begin anew, and nothing is said of it.
"""

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Ledger, OutputRecord, Plain

FORMAT = ("format", b"2")


class Formatted(Ledger):
    def restore(self, rows: list[Message]) -> None:
        super().restore([row for row in rows if FORMAT in (row.headers() or ())])

    def changed(self) -> list[OutputRecord]:
        return [row._replace(headers=[*row.headers, FORMAT]) for row in super().changed()]


class PassesOverRowsOfTheLastRelease(Plain):
    hello = Plain.hello | {
        "name": "broken/passes_over_rows_of_the_last_release",
        "version": "2",
    }
    programs = Plain.programs | {"ledger": Formatted}


serve(PassesOverRowsOfTheLastRelease())
