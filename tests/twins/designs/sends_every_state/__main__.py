"""Sends a state for every record, and declares that it does."""

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Plain


class SendsEveryState(Plain):
    hello = Plain.hello | {"name": "sends_every_state"}

    def process(self, messages: list[Message]) -> None:
        for at in range(len(messages)):
            super().process(messages[at : at + 1])


serve(SendsEveryState())
