"""A workload as it lies in the log."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest

from upheld.brokers import Broker
from upheld.generators.ledger import Send, ledger
from upheld.kafka.feed import Feed
from upheld.kafka.reading import Reading

PARTITIONS = 4


class Written(NamedTuple):
    """The feed's account of a workload, and the records that a reader finds."""

    told: dict[str, int]
    visible: list[Any]
    everything: list[Any]


@pytest.fixture
def reading(broker: Broker) -> Iterator[Reading]:
    """Yield a reader of the session's broker."""
    made = Reading(broker.bootstrap, broker.client)
    yield made
    made.close()


def written(reading: Reading, topic: str, sends: Sequence[Send]) -> Written:
    """Write a workload to a topic of its own.

    The topic is read back as soon as no transaction is open.
    """
    reading.create({topic: PARTITIONS})
    told = Feed(reading.settings, topic).write({"entries": topic}, "entries", sends)
    stable = end = None
    while stable is None or stable != end:
        stable, end = reading.ends(topic, PARTITIONS)
    visible, everything = (
        reading.records(topic, dict.fromkeys(range(PARTITIONS), 0), committed=committed)
        for committed in (True, False)
    )
    return Written(told, visible, everything)


def test_aborted_records_lie_in_between_and_end_every_partition(reading: Reading) -> None:
    """All records that count are visible, in order, and end at the told offsets.

    Aborted attempts stand in between and behind them.
    """
    sends = ledger(1, partitions=PARTITIONS)
    told, visible, everything = written(reading, "feed-between", sends)
    for partition in range(PARTITIONS):
        counted = [send.value for send in sends if send.partition == partition and not send.aborted]
        seen = [message for message in visible if message.partition() == partition]
        assert [message.value() for message in seen] == counted
        ends = seen[-1].offset() or 0
        offsets = {message.offset() for message in seen}
        aborted = [
            m.offset() or 0
            for m in everything
            if m.partition() == partition and m.offset() not in offsets
        ]
        assert min(aborted) < ends < max(aborted)
        assert told[f"feed-between-{partition}"] == ends + 1


def test_what_comes_after_the_last_aborted_records_lies_behind_them(reading: Reading) -> None:
    """In every partition an open transaction begins before all records that count.

    So no such record is visible before the rest.
    """
    sends = sorted(
        ledger(1, partitions=PARTITIONS, aborted_transactions=1), key=lambda send: not send.aborted
    )
    _, visible, everything = written(reading, "feed-behind", sends)
    assert 0 < len(visible) < len(everything)
    for partition in range(PARTITIONS):
        first = min(m.offset() for m in visible if m.partition() == partition)
        assert min(m.offset() for m in everything if m.partition() == partition) < first
