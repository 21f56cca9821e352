"""Sets aside the key and the value of what it cannot read, and what it knows of it, and none of its
headers.

Whoever makes a new record for a dead letter makes this mistake. It shows where what cannot be read
has headers.
"""

from confluent_kafka import Message

from upheld.adapter import Failed, serve
from upheld.impl.plain import Plain


class SetsValuesAloneAside(Plain):
    hello = Plain.hello | {"name": "broken/sets_values_alone_aside"}

    def set_aside(self, message: Message, failure: Failed) -> None:
        message.set_headers([])
        super().set_aside(message, failure)


serve(SetsValuesAloneAside())
