"""The lag of a consumer group, as any monitor of consumer groups reports it."""

from typing import Any, Final

from confluent_kafka import Consumer, TopicPartition

ANSWER_S: Final = 4.0


def lag(consumer: Consumer, places: list[TopicPartition]) -> dict[str, Any]:
    """Return the protocol's answer: offsets from what is committed to the ends.

    Both are read for these partitions only.
    """
    # The committed offsets come first: the ends can only grow meanwhile.
    committed = sum(max(0, place.offset) for place in consumer.committed(places, ANSWER_S))
    ends = sum(consumer.get_watermark_offsets(place, ANSWER_S)[1] for place in places)
    return {"type": "lagging", "offsets": ends - committed}
