"""How far a design is behind, for the designs that are written in Python: what any monitor of
consumer groups says.
"""

from typing import Any

from confluent_kafka import Consumer, TopicPartition

ANSWER_S = 4.0


def lag(consumer: Consumer, places: list[TopicPartition]) -> dict[str, Any]:
    """The answer of the protocol: from what the consumer's group has committed to the ends of these
    partitions.
    """
    # First: it is never ahead.
    committed = sum(max(0, place.offset) for place in consumer.committed(places, ANSWER_S))
    ends = sum(consumer.get_watermark_offsets(place, ANSWER_S)[1] for place in places)
    return {"type": "lagging", "offsets": ends - committed}
