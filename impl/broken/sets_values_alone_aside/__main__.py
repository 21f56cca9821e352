"""Sets aside key and value of what it cannot read, and none of its headers.

The letter does say what is known of the record. The mistake is to make a new record for a dead
letter. It shows where a record that cannot be read has headers.
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
