"""Joins each row where its partner lives, and sends results on as they come.

The mistake is to repartition by the foreign key. It shows where a row moves from one partner to
another.
"""

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Holdings, OutputRecord, Plain


class Unfiltered(Holdings):
    def take(self, message: Message) -> None:
        super().take(message)
        rows = [
            (sum(self.partner(row.key or b"") or b"", 0) % 4 if row.value else 4, row)
            for row in super().changed()
        ]
        self.queue = [*self.__dict__.get("queue", []), *rows]

    def changed(self) -> list[OutputRecord]:
        rows = self.__dict__.get("queue", [])
        self.queue = list[tuple[int, OutputRecord]]()
        gone = {row.key for node, row in rows if node == 4}  # a row that goes keeps its order
        return [
            row for _, row in sorted(rows, key=lambda each: -1 if each[1].key in gone else each[0])
        ]


class FiltersNoOlderResults(Plain):
    hello = Plain.hello | {"name": "broken/filters_no_older_results", "programs": ["holdings"]}
    programs = Plain.programs | {"holdings": Unfiltered}


serve(FiltersNoOlderResults())
