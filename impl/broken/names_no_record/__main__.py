"""Stops loudly at a record that it cannot read, and does not say which.

The mistake is to turn an exception into a message. It shows where a record cannot be read.
"""

from confluent_kafka import Message

from upheld.adapter import Failed, serve
from upheld.impl.plain import Holdings, Plain


class Nameless(Holdings):
    def take(self, message: Message) -> None:
        try:
            super().take(message)
        except Failed as failure:
            raise Failed(failure.kind, "a record cannot be read") from failure


class NamesNoRecord(Plain):
    hello = Plain.hello | {"name": "broken/names_no_record", "programs": ["holdings"]}
    programs = Plain.programs | {"holdings": Nameless}


serve(NamesNoRecord())
