"""Speaks protocol 1, whose `failed` has no fields.

The message alone says where the gap is.
"""

from confluent_kafka import Consumer

from upheld.adapter import Failed, serve
from upheld.impl.plain import Plain


class SpeaksProtocol1(Plain):
    hello = Plain.hello | {"name": "speaks_protocol_1", "protocol": 1}

    def look_for_a_gap(self, consumer: Consumer) -> None:
        try:
            super().look_for_a_gap(consumer)
        except Failed as failure:
            raise Failed(failure.kind, str(failure)) from None


serve(SpeaksProtocol1())
