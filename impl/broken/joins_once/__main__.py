"""Joins a row with its partner when the row comes, and never again.

Whoever looks a partner up for a stream makes this mistake with a table. It shows where a partner
changes.
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
    programs = {"holdings": Once}  # noqa: RUF012


serve(JoinsOnce())
