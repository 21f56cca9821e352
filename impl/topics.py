"""What tells a topic from one that had its name before."""

from typing import Any

from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient

ANSWER_S = 10


def topic_ids(client: dict[str, Any], topics: list[str]) -> dict[str, bytes]:
    """The ids of topics, 16 bytes each: one that was deleted and made anew has another, and its
    offsets begin anew.
    """
    admin = AdminClient(client)  # the answers end with it
    described = admin.describe_topics(TopicCollection(topics), request_timeout=ANSWER_S)
    ids = {topic: future.result(ANSWER_S).topic_id for topic, future in described.items()}
    halves = {
        t: (i.get_most_significant_bits(), i.get_least_significant_bits()) for t, i in ids.items()
    }
    return {
        topic: b"".join(half.to_bytes(8, signed=True) for half in both)
        for topic, both in halves.items()
    }
