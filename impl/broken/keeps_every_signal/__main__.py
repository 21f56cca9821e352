"""Keeps every signal once more before it adds it up.

Its copies lie in one narrow topic of its own. The mistake is to merge by copying. It shows in
bytes: they grow with the stream and not with the table.
"""

from typing import Any

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.common.topics import make_topic
from upheld.impl.plain import Plain


class KeepsEverySignal(Plain):
    hello = Plain.hello | {"name": "broken/keeps_every_signal"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        ready = super().open(start)
        self.all = start["application_id"] + "-all"
        make_topic(self.client, self.all, 1)
        return ready | {"internal_topics": [self.all]}

    def process(self, messages: list[Message]) -> None:
        for message in messages:
            self.begin()
            self.producer.produce(self.all, message.value(), message.key())
        super().process(messages)


serve(KeepsEverySignal())
