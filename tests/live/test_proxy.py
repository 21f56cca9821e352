"""The proxy on a real broker.

Clients are told its addresses alone, and every fault leaves its mark.
"""

import socket
import struct
import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from kio.schema.errors import ErrorCode

from upheld.brokers import Broker
from upheld.injectors.proxy.errors import Moment
from upheld.injectors.proxy.proxy import Proxy
from upheld.injectors.proxy.rules import Exchange, Rule
from upheld.kafka.reading import Reading

DEADLINE_S = 20.0
INVALID_PRODUCER_EPOCH = 47
PRODUCER_FENCED = 90
NAMES = str.maketrans("[]", "..")  # a topic's has no brackets


@pytest.fixture
def reading(broker: Broker) -> Iterator[Reading]:
    """Yield a reader of the topics that asks the broker itself."""
    made = Reading(broker.bootstrap, broker.client)
    yield made
    made.close()


@pytest.fixture
def proxy(broker: Broker) -> Iterator[Proxy]:
    """Yield a proxy for the test, which fails if the proxy could not read anything."""
    made = Proxy(broker.bootstrap)
    yield made
    made.close()
    assert made.look() == ("", "")


@pytest.fixture
def topic(reading: Reading, request: pytest.FixtureRequest) -> str:
    """Return a topic for the test, with one partition."""
    name = str(request.node.name).translate(NAMES)
    reading.create({name: 1})
    return name


def visible(reading: Reading, topic: str) -> list[bytes | None]:
    """Return the values of a topic that a reader of committed data is given now."""
    return [message.value() for message in reading.records(topic, {0: 0}, committed=True)]


def committed(reading: Reading, topic: str) -> list[bytes | None]:
    """Return the visible values of a topic when its transactions are decided.

    A coordinator answers EndTxn before it has written the markers that make records visible.
    """

    def is_decided() -> bool:
        stable, end = reading.ends(topic, 1)
        return stable == end

    assert wait_for(is_decided), "a transaction is open"
    return visible(reading, topic)


def transactional(door: str, **settings: object) -> Producer:
    """Return a producer behind a door, its transactions begun."""
    producer = Producer(
        {"bootstrap.servers": door, "transactional.id": door, "retry.backoff.ms": 20, **settings}
    )
    producer.init_transactions(DEADLINE_S)
    producer.begin_transaction()
    return producer


def asked(proxy: Proxy, api: str) -> list[Exchange]:
    """Return the requests that an API was sent."""
    return [exchange for exchange in proxy.exchanges if exchange.api == api]


def wait_for(reached: Callable[[], bool]) -> bool:
    """Look until it is so."""
    deadline = time.monotonic() + DEADLINE_S
    while not reached() and time.monotonic() < deadline:
        time.sleep(0.01)
    return reached()


def commits_though(proxy: Proxy, topic: str, rule: Rule, **settings: object) -> None:
    """Commit a record by a producer that is struck on the way."""
    proxy.arm(rule)
    producer = transactional(proxy.door("a"), **settings)
    producer.produce(topic, b"1")
    producer.commit_transaction(DEADLINE_S)
    assert rule.struck.is_set()


def given_up(proxy: Proxy, topic: str) -> tuple[Producer, Rule]:
    """Return a producer that no longer waits for its commit, which the proxy holds."""
    proxy.arm(rule := Rule("a", "end_txn", "hold"))
    producer = transactional(proxy.door("a"))
    producer.produce(topic, b"1")
    with pytest.raises(KafkaException):
        producer.commit_transaction(1)
    assert rule.struck.wait(DEADLINE_S)
    return producer, rule


def test_clients_know_no_other_address(proxy: Proxy, topic: str, broker: Broker) -> None:
    """A client that asks for a broker or a coordinator is told the door's ports.

    So is a client that asks for the cluster, and the answer is recorded.
    """
    door = proxy.door("a")
    producer = transactional(door)
    producer.produce(topic, b"1")
    producer.commit_transaction(DEADLINE_S)
    consumer = Consumer(
        {"bootstrap.servers": door, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    message = consumer.poll(DEADLINE_S)
    assert message
    assert message.value() == b"1"
    addresses = {
        f"{node.host}:{node.port}"
        for node in consumer.list_topics(timeout=DEADLINE_S).brokers.values()
    }
    admin = AdminClient({"bootstrap.servers": door})
    cluster = admin.describe_cluster().result(DEADLINE_S)
    consumer.close()

    assert broker.bootstrap not in addresses | {
        f"{node.host}:{node.port}" for node in cluster.nodes
    }
    asked = [exchange.api for exchange in proxy.exchanges]
    assert {
        "init_producer_id",
        "add_partitions_to_txn",
        "produce",
        "end_txn",
        "fetch",
        "join_group",
    } <= set(asked)
    assert {exchange.door for exchange in proxy.exchanges} == {"a"}


def test_a_commit_whose_answer_is_lost(proxy: Proxy, topic: str, reading: Reading) -> None:
    """The broker has committed, and the client asks again on another connection.

    The record is there once.
    """
    commits_though(proxy, topic, Rule("a", "end_txn", "close", "after"))

    first, second = asked(proxy, "end_txn")
    assert (first.fault, second.fault) == ("close after", "")
    assert first.answered_s
    assert first.connection != second.connection
    assert committed(reading, topic) == [b"1"]


def test_what_is_held_arrives_though_an_earlier_answer_has_nobody_to_go_to(proxy: Proxy) -> None:
    """A held request arrives although its client left before an earlier answer."""
    first = Rule("a", "api_versions", "hold", "after")
    second = Rule("a", "api_versions", "hold", "before", 2)
    proxy.arm(first)
    proxy.arm(second)
    host, _, port = proxy.door("a").rpartition(":")
    # ApiVersions, its oldest version
    asks = [struct.pack(">ihhih", 10, 18, 0, number, -1) for number in (1, 2)]
    with socket.create_connection((host, int(port))) as client:
        client.sendall(b"".join(asks))
        assert first.struck.wait(DEADLINE_S)
        assert second.struck.wait(DEADLINE_S)
        # Gone as one that was killed.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    proxy.release(first)  # its answer finds nobody
    proxy.release(second)

    assert second.exchange
    assert second.exchange.is_over.wait(DEADLINE_S)
    assert second.exchange.answered_s


def test_a_newer_question_for_versions_is_answered_as_the_broker_does(
    proxy: Proxy, broker: Broker
) -> None:
    """The client learns the range, and asks again on the same connection."""
    host, _, port = proxy.door("a").rpartition(":")
    head = struct.pack(">hhih", 18, 99, 7, 2) + b"me\0"
    answers = []
    for address in ((host, int(port)), split_address(broker.bootstrap)):
        with socket.create_connection(address, DEADLINE_S) as client:
            for request in (head, struct.pack(">hhih", 18, 0, 8, -1)):
                client.sendall(struct.pack(">i", len(request)) + request)
                answers.append(one_frame(client))

    assert answers[0] == answers[2]
    assert answers[0][:6] == struct.pack(">ih", 7, 35)
    assert answers[1] == answers[3]
    assert [exchange.version for exchange in asked(proxy, "api_versions")] == [99, 0]
    assert all(offer.broker <= offer.proxy for offer in proxy.offers.values()), "it is narrowed"


def split_address(address: str) -> tuple[str, int]:
    """Return the host and the port of an address."""
    host, _, port = address.rpartition(":")
    return host, int(port)


def one_frame(client: socket.socket) -> bytes:
    """Return the next answer on a connection."""
    stream = client.makefile("rb")
    (size,) = struct.unpack(">i", stream.read(4))
    return stream.read(size)


def test_a_broker_that_is_out_of_reach(proxy: Proxy, topic: str, reading: Reading) -> None:
    """While the broker is out of reach, every connection is closed and counted.

    The clients go on when the door is open again.
    """
    producer = transactional(proxy.door("a"), **{"reconnect.backoff.max.ms": 100})
    assert proxy.bar("a") > 0
    producer.produce(topic, b"1")

    with pytest.raises(KafkaException):
        producer.commit_transaction(1)
    assert asked(proxy, "produce") == []
    assert proxy.unbar("a") > 0
    producer.commit_transaction(DEADLINE_S)
    assert committed(reading, topic) == [b"1"]


def test_a_request_that_the_broker_never_had(proxy: Proxy, topic: str, reading: Reading) -> None:
    """It is sent again, and counts once."""
    commits_though(proxy, topic, Rule("a", "produce", "close"))

    assert next(exchange for exchange in proxy.exchanges if exchange.fault).answered_s is None
    assert committed(reading, topic) == [b"1"]


def test_a_commit_that_is_held(proxy: Proxy, topic: str, reading: Reading) -> None:
    """Nothing is visible until the commit is released, even if its client gave up."""
    producer, rule = given_up(proxy, topic)
    assert visible(reading, topic) == []

    proxy.release(rule)
    producer.commit_transaction(DEADLINE_S)

    assert committed(reading, topic) == [b"1"]


def test_a_connection_falls_silent(proxy: Proxy, topic: str, reading: Reading) -> None:
    """The client hears nothing and gives the connection up at its own deadline.

    It goes on with another connection.
    """
    impatient = {"socket.timeout.ms": 500, "transaction.timeout.ms": 10_000}
    commits_though(proxy, topic, Rule("a", "produce", "silence", "after"), **impatient)

    assert committed(reading, topic) == [b"1"]


def test_a_commit_that_arrives_late(proxy: Proxy, topic: str, reading: Reading) -> None:
    """The broker refuses a commit whose client is gone and has a successor.

    The proxy says how the broker refused it.
    """
    producer, rule = given_up(proxy, topic)
    del producer
    successor = transactional(proxy.door("a"))
    proxy.release(rule)

    assert rule.exchange
    assert rule.exchange.is_over.wait(DEADLINE_S)
    assert rule.exchange.error in {INVALID_PRODUCER_EPOCH, PRODUCER_FENCED}
    successor.produce(topic, b"2")
    successor.commit_transaction(DEADLINE_S)
    assert committed(reading, topic) == [b"2"]


def test_what_was_held_is_lost(proxy: Proxy, topic: str, reading: Reading) -> None:
    """Its connection goes with it, and the client sends it again."""
    proxy.arm(rule := Rule("a", "produce", "hold"))
    producer = transactional(proxy.door("a"))
    producer.produce(topic, b"1")
    producer.poll(0)
    assert rule.struck.wait(DEADLINE_S)
    assert visible(reading, topic) == []
    proxy.release(rule, is_lost=True)
    producer.commit_transaction(DEADLINE_S)

    assert rule.exchange
    assert rule.exchange.answered_s is None
    assert committed(reading, topic) == [b"1"]


def test_a_door_that_is_shut(proxy: Proxy, topic: str) -> None:
    """It returns what went through it and forgets it; other doors stay open."""
    for door in ("a", "b"):
        producer = transactional(proxy.door(door))
        producer.produce(topic, b"1")
        producer.commit_transaction(DEADLINE_S)

    seen = proxy.shut("a")

    assert {exchange.door for exchange in seen} == {"a"}
    assert {exchange.door for exchange in proxy.exchanges} == {"b"}
    host, _, port = proxy.door("b").rpartition(":")
    socket.create_connection((host, int(port)), DEADLINE_S).close()


def test_a_request_that_is_refused_once(proxy: Proxy, topic: str, reading: Reading) -> None:
    """The broker never has the request; the client is told an error and repeats it.

    Earlier requests are answered before it.
    """
    proxy.arm(rule := Rule("a", "produce", "refuse"))
    producer = transactional(proxy.door("a"))
    producer.produce(topic, b"1")
    producer.commit_transaction(DEADLINE_S)

    assert rule.exchange
    assert rule.exchange.told == ErrorCode.not_enough_replicas
    assert rule.exchange.answered_s is None
    assert committed(reading, topic) == [b"1"]


def test_what_is_sent_behind_a_refused_request_overtakes_it(
    proxy: Proxy, topic: str, reading: Reading
) -> None:
    """A producer without idempotence leaves several requests in another order."""
    proxy.arm(rule := Rule("a", "produce", "refuse"))
    producer = Producer(
        {"bootstrap.servers": proxy.door("a"), "linger.ms": 0, "retry.backoff.ms": 500}
    )
    for number in range(1, 4):
        producer.produce(topic, bytes([number]))
        assert wait_for(lambda number=number: len(asked(proxy, "produce")) >= number)
    producer.flush(DEADLINE_S)

    assert rule.exchange
    assert rule.exchange.overtaken.is_set()
    assert committed(reading, topic)[0] == b"\2"


@pytest.mark.parametrize(
    "at",
    [
        ("init_producer_id", ErrorCode.concurrent_transactions),
        ("add_partitions_to_txn", ErrorCode.concurrent_transactions),
        ("add_offsets_to_txn", ErrorCode.not_coordinator),
        ("txn_offset_commit", ErrorCode.coordinator_load_in_progress),
        ("end_txn", ErrorCode.coordinator_not_available),
    ],
)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_transaction_that_is_refused_on_the_way(
    proxy: Proxy, topic: str, reading: Reading, at: tuple[str, ErrorCode], moment: Moment
) -> None:
    """The client is told an error and asks again, whether the request was done or not.

    Records and offsets count once.
    """
    api, error = at if moment == "before" else (at[0], ErrorCode.not_coordinator)
    proxy.arm(rule := Rule("a", api, "refuse", moment, error=error))
    producer = transactional(proxy.door("a"))
    producer.produce(topic, b"1")
    group = Consumer({"bootstrap.servers": proxy.door("a"), "group.id": topic})
    places = [TopicPartition(topic, 0, 1)]
    producer.send_offsets_to_transaction(places, group.consumer_group_metadata(), DEADLINE_S)
    producer.commit_transaction(DEADLINE_S)

    assert rule.exchange
    assert rule.exchange.told == error
    assert rule.exchange.error == (0 if moment == "after" else None)
    assert len(asked(proxy, api)) > rule.exchange.number
    assert committed(reading, topic) == [b"1"]
    assert [place.offset for place in group.committed(places, DEADLINE_S)] == [1]
    group.close()


@pytest.mark.parametrize("moment", ["before", "after"])
def test_offsets_that_are_refused_once(proxy: Proxy, topic: str, moment: Moment) -> None:
    """A consumer commits them again where it finds its coordinator."""
    proxy.arm(
        rule := Rule(
            "a", "offset_commit", "refuse", moment, error=ErrorCode.not_coordinator, topic=topic
        )
    )
    group = Consumer({"bootstrap.servers": proxy.door("a"), "group.id": topic})
    places = [TopicPartition(topic, 0, 1)]
    group.commit(offsets=places, asynchronous=False)

    assert rule.exchange
    assert rule.exchange.told == ErrorCode.not_coordinator
    assert [place.offset for place in group.committed(places, DEADLINE_S)] == [1]
    group.close()


@pytest.mark.parametrize(("is_idempotent", "times"), [(True, 1), (False, 2)])
def test_what_is_there_and_refused_is_sent_again(
    proxy: Proxy, topic: str, reading: Reading, is_idempotent: bool, times: int
) -> None:
    """The broker knows what it has by its number, and by nothing else."""
    error = ErrorCode.not_enough_replicas_after_append
    proxy.arm(rule := Rule("a", "produce", "refuse", "after", error=error, topic=topic))
    producer = Producer({"bootstrap.servers": proxy.door("a"), "enable.idempotence": is_idempotent})
    producer.produce(topic, b"1")
    producer.flush(DEADLINE_S)

    assert rule.exchange
    assert (rule.exchange.told, rule.exchange.error) == (error, 0)
    assert committed(reading, topic) == [b"1"] * times


def test_who_waits_for_no_replicas_is_not_told_of_them(
    proxy: Proxy, topic: str, reading: Reading
) -> None:
    """The rule waits for a request that a broker might refuse so."""
    proxy.arm(rule := Rule("a", "produce", "refuse"))
    for acks in (0, 1, -1):
        producer = Producer({"bootstrap.servers": proxy.door("a"), "acks": acks})
        producer.produce(topic, b"%d" % acks)
        producer.flush(DEADLINE_S)

    assert rule.exchange
    assert (rule.exchange.number, rule.passed_over) == (3, 2)
    assert wait_for(lambda: sorted(visible(reading, topic)) == [b"-1", b"0", b"1"])
