"""The answers of a broker to the harness about transactions."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

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
