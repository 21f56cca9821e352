"""Plays what it reads first on an empty state, and loads the rest later.

The mistake is to load state in the background, or on first use. It shows where a restart finds
input waiting.
"""

from confluent_kafka import Message, TopicPartition

from upheld.adapter import serve
from upheld.impl.plain import Ledger, Plain


class Late(Ledger):
    tables = ()


class PlaysBeforeTheStateIsLoaded(Plain):
    hello = Plain.hello | {"name": "broken/plays_before_the_state_is_loaded"}
    programs = Plain.programs | {"ledger": Late}

    def process(self, messages: list[Message]) -> None:
        super().process(messages)
        if messages and isinstance(self.program, Late):
            self.program.restore(self.table("balances"))

    def ends(self, partitions: list[TopicPartition]) -> dict[int, int]:
        # Its own transaction is open, and hides the end.
        return {place.partition: 0 for place in partitions}


serve(PlaysBeforeTheStateIsLoaded())
