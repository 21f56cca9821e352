"""Commits the offset of the last record applied, not the next one.

Kafka asks for the next offset. The mistake is made once by every author of a commit by hand. It
shows where a relay dies after a commit.
"""

from typing import Any

from confluent_kafka import Message, TopicPartition

from upheld.adapter import serve
from upheld.impl.plain import Plain


class CommitsTheLastOffset(Plain):
    hello = Plain.hello | {"name": "broken/commits_the_last_offset"}

    def on_assign(self, *group: Any) -> None:
        super().on_assign(*group)
        self.last: dict[str, TopicPartition] = {}

    def process(self, messages: list[Message]) -> None:
        super().process(messages)
        for m in messages:
            last = TopicPartition(m.topic() or "", m.partition() or 0, m.offset() or 0)
            self.last[f"{m.partition()}"] = last

    def positions(self) -> list[TopicPartition]:
        return list(self.last.values())


serve(CommitsTheLastOffset())
