"""Reads the names of robots, and joins them with nothing.

The mistake is to join on a key of another type, and a left join hides it. It shows where names were
there before.
"""

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Plain
from upheld.impl.plain.programs import Pulse


class Nameless(Pulse):
    def take(self, message: Message) -> None:
        if not str(message.topic()).endswith("robots"):
            super().take(message)


class NeverFindsAName(Plain):
    hello = Plain.hello | {"name": "broken/never_finds_a_name"}
    programs = Plain.programs | {"pulse": Nameless}


serve(NeverFindsAName())
