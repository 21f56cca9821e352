"""Topics that a design makes, and the ids of topics.

An id tells a topic from another one that had its name before.
"""

import time
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from upheld.adapter import Failed

ANSWER_S: Final = 10
LOOK_S: Final = 0.02
# A topic is said to have leaders before each of them knows that it leads. These are the errors at
# which Kafka's own client asks again where a partition ends, and those of librdkafka for a topic of
# which it knows no leader.
NOT_YET: Final = {
    KafkaError._NOENT,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
}


def make_topic(client: dict[str, Any], topic: str, partitions: int) -> None:
    """Make a topic unless it is there, and wait until all of it can be read."""
    admin = AdminClient(client)
    create_topic(admin, topic, partitions, ANSWER_S)
    places = [TopicPartition(topic, partition) for partition in range(partitions)]
    until = time.monotonic() + ANSWER_S
    while not all(_is_served(admin, place) for place in places):
        if time.monotonic() > until:
            raise Failed("storage", f"{topic} cannot be read within {ANSWER_S} s")
        time.sleep(LOOK_S)


def create_topic(admin: AdminClient, topic: str, partitions: int, answer_s: float) -> None:
    """Create a topic unless it is there; the broker answers within `answer_s`."""
    try:
        admin.create_topics([NewTopic(topic, partitions)])[topic].result(answer_s)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise


def _is_served(admin: AdminClient, place: TopicPartition) -> bool:
    """Return whether the leader of a partition says where it ends."""
    (asked,) = admin.list_offsets({place: OffsetSpec.latest()}).values()
    error = asked.exception(ANSWER_S)
    if error is None:
        return True
    if isinstance(error, KafkaException) and error.args[0].code() in NOT_YET:
        return False
    raise error


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
