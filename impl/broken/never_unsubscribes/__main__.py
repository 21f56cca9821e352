"""Subscribes a row to its new partner and leaves it with the old one.

The old partner sends the row on as it knew it. The mistake is to write a subscription and no end to
it. It shows where an old partner changes.
"""

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Holdings, Plain


class StillThere(Holdings):
    def take(self, message: Message) -> None:
        key = message.key() or b""
        old = self.__dict__.setdefault("old", {})  # row -> how its old partner knows it
        if self.left.get(key) and message.value() and not str(message.topic()).endswith("tickers"):
            old[key] = self.left[key]
        super().take(message)
        for row, entry in old.items():
            if (
                str(message.topic()).endswith("tickers")
                and row in self.left
                and entry.row["ticker"] == key.decode()
            ):
                self.left[row] = entry
                self.touched[row] = None


class NeverUnsubscribes(Plain):
    hello = Plain.hello | {"name": "broken/never_unsubscribes", "programs": ["holdings"]}
    programs = Plain.programs | {"holdings": StillThere}


serve(NeverUnsubscribes())
