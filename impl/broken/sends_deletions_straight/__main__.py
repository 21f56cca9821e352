"""Sends a deletion straight to the result, past the queue of what is still to be joined.

Whoever thinks that a deletion needs no join makes this mistake. It shows where a row goes right
after it came.
"""

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Holdings, Plain, Row


class Straight(Holdings):
    def take(self, message: Message) -> None:
        super().take(message)
        self.queue = [*self.__dict__.get("queue", []), *super().changed()]

    def changed(self) -> list[Row]:
        rows, self.queue = self.__dict__.get("queue", []), list[Row]()
        known, there = (
            self.__dict__.get("gone", set[bytes]()),
            [row for row in rows if row[1] is not None],
        )
        gone = {row[0]: row for row in rows if row[1] is None}
        self.gone = (known | gone.keys()) - {row[0] for row in there}
        return [row for key, row in gone.items() if key not in known] + there


class SendsDeletionsStraight(Plain):
    hello = Plain.hello | {"name": "broken/sends_deletions_straight", "programs": ["holdings"]}
    programs = {"holdings": Straight}  # noqa: RUF012


serve(SendsDeletionsStraight())
