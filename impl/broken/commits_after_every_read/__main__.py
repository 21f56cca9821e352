"""Commits whenever it has read something.

The mistake is to take the commit interval for an upper bound. It shows in the number of
transactions under steady traffic: each costs the same, however little is in it.
"""

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Plain


class CommitsAfterEveryRead(Plain):
    hello = Plain.hello | {"name": "broken/commits_after_every_read"}

    def process(self, read: list[Message]) -> None:
        super().process(read)
        if read:
            self.commit()


serve(CommitsAfterEveryRead())
