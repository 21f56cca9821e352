"""Sends its dead letters at once, by a producer outside of the transaction.

The mistake is to let a library handle what cannot be read. It shows when a crash comes before the
commit.
"""

from typing import Any

from confluent_kafka import Producer

from upheld.adapter import serve
from upheld.impl.plain import OutputRecord, Plain


class SendsDeadLettersOnItsOwn(Plain):
    hello = Plain.hello | {"name": "broken/sends_dead_letters_on_its_own"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        ready = super().open(start)
        self.library = Producer(self.client)
        return ready

    def hand_over(self, rows: list[OutputRecord], topic: str) -> None:
        is_letter = topic == self.start["topics"].get("dead_letters")
        super().hand_over([] if is_letter else rows, topic)
        for key, value, headers, timestamp_ms in rows if is_letter else []:
            self.library.produce(topic, value, key, headers=headers, timestamp=timestamp_ms)
        self.library.flush(10)


serve(SendsDeadLettersOnItsOwn())
