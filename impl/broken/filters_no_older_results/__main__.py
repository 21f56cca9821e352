"""Joins each row where its partner lives, and sends the results on as they come from there.

Whoever repartitions by the foreign key makes this mistake. It shows where a row moves from one
partner to another.
"""

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Holdings, Plain, Row


class Unfiltered(Holdings):
    def take(self, message: Message) -> None:
        super().take(message)
        rows = [
            (sum(self.partner(row[0]) or b"") % 4 if row[1] else 4, row)
            for row in super().changed()
        ]
        self.queue = [*self.__dict__.get("queue", []), *rows]

    def changed(self) -> list[Row]:
        rows, self.queue = self.__dict__.get("queue", []), list[tuple[int, Row]]()
        gone = {row[0] for node, row in rows if node == 4}  # what goes meanwhile keeps its order
        return [
            row for _, row in sorted(rows, key=lambda each: -1 if each[1][0] in gone else each[0])
        ]


class FiltersNoOlderResults(Plain):
    hello = Plain.hello | {"name": "broken/filters_no_older_results", "programs": ["holdings"]}
    programs = {"holdings": Unfiltered}  # noqa: RUF012


serve(FiltersNoOlderResults())
