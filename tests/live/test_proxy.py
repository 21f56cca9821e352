"""The proxy on a real broker: clients are told its addresses alone, and every fault leaves its mark."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from streamgate.brokers import Broker
from streamgate.faults.wire import Proxy, Rule
from streamgate.history.reading import Reading

DEADLINE_S = 20.0


@pytest.fixture
def reading(broker: Broker) -> Iterator[Reading]:
    """What is in the topic, asked of the broker itself."""
    made = Reading(broker.bootstrap, broker.client)
    yield made
    made.close()


@pytest.fixture
def proxy(broker: Broker) -> Iterator[Proxy]:
    """One for the test; what it could not read fails it."""
    made = Proxy(broker.bootstrap)
    yield made
    made.close()
    assert made.failure == ""


@pytest.fixture
def topic(reading: Reading, request: pytest.FixtureRequest) -> str:
    """One for the test, with one partition."""
    reading.create({request.node.name: 1})
    return str(request.node.name)


def committed(reading: Reading, topic: str) -> list[bytes | None]:
    """The visible values of a topic."""
    return [message.value() for message in reading.records(topic, {0: 0}, committed=True)]


def transactional(door: str, **settings: object) -> Producer:
    """A producer behind a door, its transactions begun."""
    producer = Producer({"bootstrap.servers": door, "transactional.id": door, "retry.backoff.ms": 20, **settings})
    producer.init_transactions(DEADLINE_S)
    producer.begin_transaction()
    return producer


def test_clients_know_no_other_address(proxy: Proxy, topic: str, broker: Broker) -> None:
    """Whatever they ask for a broker, a coordinator or the cluster, they are told the door's own ports; and it is recorded."""
    door = proxy.door("a")
    producer = transactional(door)
    producer.produce(topic, b"1")
    producer.commit_transaction(DEADLINE_S)
    consumer = Consumer({"bootstrap.servers": door, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    message = consumer.poll(DEADLINE_S)
    assert message
    assert message.value() == b"1"
    addresses = {f"{node.host}:{node.port}" for node in consumer.list_topics(timeout=DEADLINE_S).brokers.values()}
    admin = AdminClient({"bootstrap.servers": door})
    cluster = admin.describe_cluster().result(DEADLINE_S)
    consumer.close()

    assert broker.bootstrap not in addresses | {f"{node.host}:{node.port}" for node in cluster.nodes}
    asked = [exchange.api for exchange in proxy.exchanges]
    assert {"init_producer_id", "add_partitions_to_txn", "produce", "end_txn", "fetch", "join_group"} <= set(asked)
    assert {exchange.door for exchange in proxy.exchanges} == {"a"}


def test_a_commit_whose_answer_is_lost(proxy: Proxy, topic: str, reading: Reading) -> None:
    """The broker has committed, the client asks again on another connection, and the record is there once."""
    proxy.rules.append(rule := Rule("a", "end_txn", "close", "after"))
    producer = transactional(proxy.door("a"))
    producer.produce(topic, b"1")
    producer.commit_transaction(DEADLINE_S)

    assert rule.struck.is_set()
    first, second = (exchange for exchange in proxy.exchanges if exchange.api == "end_txn")
    assert (first.fault, second.fault) == ("close after", "")
    assert first.answered_s
    assert first.connection != second.connection
    assert committed(reading, topic) == [b"1"]


def test_a_request_that_the_broker_never_had(proxy: Proxy, topic: str, reading: Reading) -> None:
    """It is sent again, and counts once."""
    proxy.rules.append(rule := Rule("a", "produce", "close"))
    producer = transactional(proxy.door("a"))
    producer.produce(topic, b"1")
    producer.commit_transaction(DEADLINE_S)

    assert rule.struck.is_set()
    assert next(exchange for exchange in proxy.exchanges if exchange.fault).answered_s is None
    assert committed(reading, topic) == [b"1"]


def test_a_commit_that_is_held(proxy: Proxy, topic: str, reading: Reading) -> None:
    """Nothing is visible until it is released, though whoever asked for it has given up."""
    proxy.rules.append(rule := Rule("a", "end_txn", "hold"))
    producer = transactional(proxy.door("a"))
    producer.produce(topic, b"1")
    with pytest.raises(KafkaException):
        producer.commit_transaction(1)
    assert rule.struck.wait(DEADLINE_S)
    assert committed(reading, topic) == []

    proxy.release(rule)
    producer.commit_transaction(DEADLINE_S)

    assert committed(reading, topic) == [b"1"]


def test_a_connection_falls_silent(proxy: Proxy, topic: str, reading: Reading) -> None:
    """The client hears nothing, gives the connection up at its own deadline, and goes on with another."""
    proxy.rules.append(rule := Rule("a", "produce", "silence", "after"))
    producer = transactional(proxy.door("a"), **{"socket.timeout.ms": 500, "transaction.timeout.ms": 10_000})
    producer.produce(topic, b"1")
    producer.commit_transaction(DEADLINE_S)

    assert rule.struck.is_set()
    assert committed(reading, topic) == [b"1"]
