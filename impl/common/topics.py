"""Topic ids, which tell a topic from another one that had its name before."""

from typing import Any, Final

from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient

ANSWER_S: Final = 10


def topic_ids(client: dict[str, Any], topics: list[str]) -> dict[str, bytes]:
    """Return the ids of topics, 16 bytes each.

    A topic that was deleted and made anew has another id, and its offsets begin anew.
    """
    admin = AdminClient(client)  # the answers end with it
    described = admin.describe_topics(TopicCollection(topics), request_timeout=ANSWER_S)
    return {
        topic: _bytes_of(future.result(ANSWER_S).topic_id) for topic, future in described.items()
    }


def _bytes_of(topic_id: Any) -> bytes:
    """Return the two halves of a `Uuid`, which the client's type stub leaves out."""
    halves = (topic_id.get_most_significant_bits(), topic_id.get_least_significant_bits())
    return b"".join(half.to_bytes(8, signed=True) for half in halves)
