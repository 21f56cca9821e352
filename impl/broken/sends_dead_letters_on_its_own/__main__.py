"""Sends its dead letters at once, by a producer that knows nothing of the transaction.

Whoever has a library handle what cannot be read makes this mistake. It shows when a crash comes
before the commit.
"""

from typing import Any

from confluent_kafka import Producer

from upheld.adapter import serve
from upheld.impl.plain import Plain, Row


class SendsDeadLettersOnItsOwn(Plain):
    hello = Plain.hello | {"name": "broken/sends_dead_letters_on_its_own"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        ready, self.library = super().open(start), Producer(self.client)
        return ready

    def hand_over(self, rows: list[Row], topic: str) -> None:
        is_letter = topic == self.start["topics"].get("dead_letters")
        super().hand_over([] if is_letter else rows, topic)
        for key, value, headers, timestamp_ms in rows if is_letter else []:
            self.library.produce(topic, value, key, headers=headers, timestamp=timestamp_ms)
        self.library.flush(10)


serve(SendsDeadLettersOnItsOwn())
