"""Joins a row with its partner when the row comes, and never again.

The mistake is to look a partner up as for a stream, in a table. It shows where a partner changes.
"""

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Holdings, Plain


class Once(Holdings):
    def take(self, message: Message) -> None:
        touched = dict(self.touched)
        super().take(message)
        if str(message.topic()).endswith("tickers"):
            self.touched = touched


class JoinsOnce(Plain):
    hello = Plain.hello | {"name": "broken/joins_once", "programs": ["holdings"]}
    programs = Plain.programs | {"holdings": Once}


serve(JoinsOnce())
