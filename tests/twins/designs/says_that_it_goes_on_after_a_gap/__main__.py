"""If unread records are gone, goes on with the earliest record left, and says so.

The request to start says `offset_reset: earliest`, and each partition gets a notice.
"""

from confluent_kafka import Consumer

from upheld.adapter import serve
from upheld.impl.plain import Plain


class SaysThatItGoesOnAfterAGap(Plain):
    hello = Plain.hello | {"name": "says_that_it_goes_on_after_a_gap"}

    def look_for_a_gap(self, consumer: Consumer) -> None:
        for place in (place for place in self.committed if place.offset >= 0):
            first, _ = consumer.get_watermark_offsets(place, 10)
            if place.offset < first:
                where = {"topic": place.topic, "partition": place.partition}
                self.notice("offset-reset", **where, **{"from": place.offset, "to": first})


serve(SaysThatItGoesOnAfterAGap())
