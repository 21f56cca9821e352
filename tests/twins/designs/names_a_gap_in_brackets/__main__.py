"""Stops loudly at a gap in its input, and says where: `topic [0]`.

The tools of librdkafka name a partition in this way.
"""

from confluent_kafka import Consumer

from upheld.adapter import Failed, serve
from upheld.impl.plain import Plain


class NamesAGapInBrackets(Plain):
    hello = Plain.hello | {"name": "names_a_gap_in_brackets"}

    def look_for_a_gap(self, consumer: Consumer) -> None:
        for place in (place for place in self.committed if place.offset >= 0):
            first, _ = consumer.get_watermark_offsets(place, 10)
            if place.offset < first:
                raise Failed("offset-lost", f"{place.topic} [{place.partition}] lacks records")


serve(NamesAGapInBrackets())
