"""A message names a place in any usual form, and no other place by accident."""

import pytest

from upheld.checks.places import (
    names_file,
    names_partition,
    names_record,
    stop_names_file,
    stop_names_partition,
    stop_names_record,
)
from upheld.history.events import Failure, Instance

PLACE = "app-entries-1"
AT = "app-entries-1@7"


@pytest.mark.parametrize(
    "message",
    [
        "app-entries-1 lacks records",
        "app-entries[1] lacks records",
        "app-entries [1] lacks records",
        "app-entries/1",
        "app-entries:1",
        "app-entries (partition 1)",
        "app-entries[p1]",
        "app-entries: partition #1",
        "partition 1 of app-entries",
        "partition 1 of topic 'app-entries'",
        "Partition [1] in topic app-entries",
        "topic 'app-entries' partition 1",
        "topic=app-entries, partition=[1]",
        "TP(topic='app-entries', partition=1)",
        "TopicPartition{topic=app-entries,partition=1,offset=3}",
        "ConsumerRecord(topic = app-entries, partition = 1, leaderEpoch = 0, offset = 3,",
        '{"topic": "app-entries", "partition": 1}',
        "Fetch position is out of range for partitions {app-entries-1=501}",
    ],
)
def test_names_a_partition(message: str) -> None:
    """Java, librdkafka, kafka-python and franz-go each write it in a way of their own."""
    assert names_partition(message, PLACE)


@pytest.mark.parametrize(
    "message",
    [
        "app-entries lacks records",
        "partition 1 lacks records",
        "app-entries-12",
        "app-entries [12]",
        "my-app-entries-1",
        "app-entries.v2-1",
        "app-entries-2@1",
        "app-entries[2] offset 1",
        "partition 2 of app-entries at offset 1",
    ],
)
def test_names_another_partition(message: str) -> None:
    """A longer name, a longer number or an offset is no partition."""
    assert not names_partition(message, PLACE)


@pytest.mark.parametrize(
    "message",
    [
        "app-entries-1@7 cannot be read",
        "app-entries[1]@7",
        "app-entries-1:7",
        "app-entries/1/7",
        "app-entries[1][7]",
        "app-entries-1 at 7",
        "app-entries [1] at offset 7",
        "offset 7 of partition 1 of app-entries",
        "Error deserializing key/value for partition app-entries-1 at offset 7. If needed,",
        "ConsumerRecord(topic = app-entries, partition = 1, leaderEpoch = 0, offset = 7,",
        '{"topic":"app-entries","partition":1,"offset":7}',
    ],
)
def test_names_a_record(message: str) -> None:
    """The offset stands beside the partition, or after its own word."""
    assert names_record(message, AT)


@pytest.mark.parametrize(
    "message",
    [
        "app-entries-1",
        "app-entries-1@77",
        "app-entries-12@7",
        "app-entries-7@1",
        "app-entries-2 at offset 7",
    ],
)
def test_names_another_record(message: str) -> None:
    """Both the partition and the offset have to be the record's."""
    assert not names_record(message, AT)


@pytest.mark.parametrize(
    ("file", "message", "is_named"),
    [
        ("durable/waiting-7.json", "waiting-7.json cannot be read", True),
        ("durable/waiting-7.json", "waiting-77.json cannot be read", False),
        ("durable/offsets/3", "Incomplete log file in file:/d/offsets/3", True),
        ("durable/offsets/3", "batch 3 cannot be read", False),
    ],
)
def test_names_a_file(file: str, message: str, is_named: bool) -> None:
    """A file whose name is a number is named by its folder too."""
    assert names_file(message, file) is is_named


@pytest.mark.parametrize(("partition", "is_named"), [(1, True), (2, False)])
def test_fields_come_before_the_message(partition: int, is_named: bool) -> None:
    """A loud stop that has fields for the place may say what it likes beside them."""
    where = {"topic": "app-entries", "partition": partition, "offset": 7}
    failure = Failure(kind="offset-lost", **where)
    stop = Instance(
        at_ms=1, application="app", name="a", event="failed", detail=AT, failure=failure
    )

    assert stop_names_partition(stop, PLACE) is is_named
    assert stop_names_record(stop, AT) is is_named


def test_a_file_in_its_field() -> None:
    """The field `file` names the file alone, as the message may do."""
    failure = Failure(kind="storage", file="waiting-7.json")
    said = {"event": "failed", "detail": "storage: no state", "failure": failure}
    stop = Instance(at_ms=1, application="app", name="a", **said)

    assert stop_names_file(stop, "durable/waiting-7.json")
    assert not stop_names_file(stop, "durable/waiting-8.json")
