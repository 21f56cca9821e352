"""Begins at the end of a partition that is new among others it has read.

The mistake is to take a partition without an offset for an empty one. It shows where a topic got
partitions. Records that lay in a new partition before the design had heard of it are not counted.
"""

import time

from confluent_kafka import Consumer, TopicPartition

from upheld.adapter import serve
from upheld.impl.plain import Plain


class BeginsAtTheEndOfWhatIsNew(Plain):
    hello = Plain.hello | {"name": "broken/begins_at_the_end_of_what_is_new"}

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


serve(BeginsAtTheEndOfWhatIsNew())
