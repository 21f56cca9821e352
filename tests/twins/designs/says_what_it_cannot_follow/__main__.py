"""Begins at the end of a partition that is new.

The design declares that its engine cannot do better. The right line stands in its design.toml:
`cannot`. The row is unsupported before it begins.
"""

import time

from confluent_kafka import Consumer, TopicPartition

from upheld.adapter import serve
from upheld.impl.plain import Plain


class SaysWhatItCannotFollow(Plain):
    hello = Plain.hello | {"name": "says_what_it_cannot_follow"}

    def on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        places = consumer.committed(partitions, 30)
        new = [place for place in places if place.offset < 0]
        if 0 < len(new) < len(places):
            until_s = time.monotonic() + 5  # an empty partition would lose nothing
            while time.monotonic() < until_s and not all(place.offset > 0 for place in new):
                for place in new:
                    place.offset = consumer.get_watermark_offsets(place, 10)[1]
            consumer.commit(offsets=new, asynchronous=False)
        super().on_assign(consumer, partitions)


serve(SaysWhatItCannotFollow())
