"""Subscribes a row to its new partner and leaves it with the old one, which sends the row on as it
knew it.

Whoever writes a subscription and no end to it makes this mistake. It shows where an old partner
changes.
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
                and entry[0]["ticker"] == key.decode()
            ):
                self.left[row], self.touched[row] = entry, None


class NeverUnsubscribes(Plain):
    hello = Plain.hello | {"name": "broken/never_unsubscribes", "programs": ["holdings"]}
    programs = {"holdings": StillThere}  # noqa: RUF012


serve(NeverUnsubscribes())
