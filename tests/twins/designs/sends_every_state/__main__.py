"""Sends a state for every record, and declares that it does."""

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Plain

AT_ONCE = 1


class SendsEveryState(Plain):
    hello = Plain.hello | {"name": "sends_every_state"}

    def process(self, messages: list[Message]) -> None:
        for at in range(0, len(messages), AT_ONCE):
            super().process(messages[at : at + AT_ONCE])


serve(SendsEveryState())
