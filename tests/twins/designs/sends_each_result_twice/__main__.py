"""Sends each result of a join twice, each row of pulse too, and a tombstone once."""

from upheld.adapter import serve
from upheld.impl.plain import OutputRecord, Plain


class SendsEachResultTwice(Plain):
    hello = Plain.hello | {"name": "sends_each_result_twice"}

    def send(self, rows: list[OutputRecord]) -> None:
        super().send([row for row in rows for _ in range(1 if row.value is None else 2)])


serve(SendsEachResultTwice())
