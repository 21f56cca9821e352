"""The answers of a broker to the harness about transactions and groups."""

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer

from upheld.brokers import Broker
from upheld.kafka.reading import Reading

DEADLINE_S = 30.0


@pytest.fixture
def reading(broker: Broker) -> Iterator[Reading]:
    """Yield a reader of the broker, on which others may have transactions open."""
    made = Reading(broker.bootstrap, broker.client)
    yield made
    made.close()


def test_an_open_transaction_is_undecided_until_it_ends(reading: Reading) -> None:
    """The writer stands above the last stable offset and among the undecided.

    A decided transaction has neither.
    """
    reading.create({"undecided": 1})
    producer = Producer(reading.settings | {"transactional.id": "undecided"})
    producer.init_transactions(DEADLINE_S)
    others = set(reading.raw.undecided())
    found = []
    for ends in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        producer.produce("undecided", b"value")
        producer.flush(DEADLINE_S)
        stable, _ = reading.ends("undecided", 1)
        found.append({batch.producer_id for _, batch in reading.raw.batches("undecided", stable)})
        found.append(reading.raw.undecided() - others)
        ends(DEADLINE_S)
        found.append(reading.raw.undecided() - others)
    writer = found[0]

    assert len(writer) == 1
    assert found == [writer, writer, set()] * 2


def test_a_group_says_who_holds_what(reading: Reading) -> None:
    """A group names each member with its partitions once the members agree.

    Before that it names none, and a group without members has none.
    """
    reading.create({"held": 3})
    members = [Consumer(reading.settings | {"group.id": "held"}) for _ in range(2)]
    for member in members:
        member.subscribe(["held"])
    deadline = time.monotonic() + DEADLINE_S
    held = reading.members("held")
    while (held is None or len(held) < len(members)) and time.monotonic() < deadline:
        for member in members:
            member.poll(0.05)
        held = reading.members("held")
    for member in members:
        member.close()

    assert held == [["held-0", "held-1"], ["held-2"]]
    assert reading.members("held") == []
