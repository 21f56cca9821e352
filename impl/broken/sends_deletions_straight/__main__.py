"""Sends a deletion straight to the result, past what is still to be joined.

The mistake is to think that a deletion needs no join. It shows where a row goes right after it
came.
"""

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Holdings, OutputRecord, Plain


class Straight(Holdings):
    def take(self, message: Message) -> None:
        super().take(message)
        self.queue = [*self.__dict__.get("queue", []), *super().changed()]

    def changed(self) -> list[OutputRecord]:
        rows = self.__dict__.get("queue", [])
        self.queue = list[OutputRecord]()
        known = self.__dict__.get("gone", set[bytes | None]())
        there = [row for row in rows if row.value is not None]
        gone = {row.key: row for row in rows if row.value is None}
        self.gone = (known | gone.keys()) - {row.key for row in there}
        return [row for key, row in gone.items() if key not in known] + there


class SendsDeletionsStraight(Plain):
    hello = Plain.hello | {"name": "broken/sends_deletions_straight", "programs": ["holdings"]}
    programs = Plain.programs | {"holdings": Straight}


serve(SendsDeletionsStraight())
