"""Stops loudly at a gap in its input, and does not say where.

The mistake is to turn an error into a message without a place. It shows where retention was over
before a design came back: the operator cannot tell which partition lacks records.
"""

from confluent_kafka import Consumer

from upheld.adapter import Failed, serve
from upheld.impl.plain import Plain


class NamesNoGap(Plain):
    hello = Plain.hello | {"name": "broken/names_no_gap"}

    def look_for_a_gap(self, consumer: Consumer) -> None:
        for place in (place for place in self.committed if place.offset >= 0):
            first, _ = consumer.get_watermark_offsets(place, 10)
            if place.offset < first:
                raise Failed("offset-lost", "some of the input is gone")


serve(NamesNoGap())
