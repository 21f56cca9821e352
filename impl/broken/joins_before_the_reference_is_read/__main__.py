"""Joins the first records with as much of the reference as is read by then.

The mistake is to read the reference beside the records, by flow control alone. It shows where
records wait.
"""

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Plain, Tickers


class Early(Tickers):
    tables: tuple[str, ...] = ("positions",)


class JoinsBeforeTheReferenceIsRead(Plain):
    hello = Plain.hello | {
        "name": "broken/joins_before_the_reference_is_read",
        "programs": ["tickers"],
    }
    programs = Plain.programs | {"tickers": Early}

    def process(self, messages: list[Message]) -> None:
        super().process(messages)
        if messages and not self.program.tables[1:]:
            self.program.tables = Tickers.tables
            self.program.restore(self.table("tickers"))


serve(JoinsBeforeTheReferenceIsRead())
