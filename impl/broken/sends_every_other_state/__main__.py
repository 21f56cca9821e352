"""Sends a state for every two records, and declares that it sends every state.

The mistake is a batch that the design takes for one record. It shows where an account has two
entries that are read together: the state between them never comes.
"""

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Plain


class SendsEveryOtherState(Plain):
    hello = Plain.hello | {"name": "broken/sends_every_other_state"}

    def process(self, messages: list[Message]) -> None:
        for at in range(0, len(messages), 2):
            super().process(messages[at : at + 2])


serve(SendsEveryOtherState())
