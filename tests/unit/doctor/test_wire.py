"""The doctor reads from an application's requests what it is and does."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v13 import request as v13
from kio.schema.index import api_key_map
from kio.schema.metadata.v9 import response as v9
from kio.schema.offset_commit.v8 import request as outside
from kio.schema.produce.v9.request import TopicProduceData
from kio.schema.txn_offset_commit.v3 import request as inside
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64

from upheld.doctor.wire import Commit, Wire
from upheld.injectors.proxy.frames import encode, parse
from upheld.injectors.proxy.proxy import Proxy
from upheld.injectors.proxy.rules import Exchange

KEYS = {name: key for key, name in api_key_map.items()}
TOPIC_ID = UUID(int=7)
SIX_S = i32Timedelta.parse(timedelta(seconds=6))


@pytest.fixture
def wire() -> Iterator[Wire]:
    """Yield a wire; its proxy is before nothing."""
    proxy = Proxy("127.0.0.1:1")
    yield Wire(proxy)
    proxy.close()


def heard(wire: Wire, api: str, version: int, **fields: Any) -> None:
    """Let the wire hear a request."""
    schema: Any = load_request_schema(KEYS[api], version)
    header = schema.__header_schema__(
        request_api_key=i16(KEYS[api]),
        request_api_version=i16(version),
        correlation_id=i32(1),
        client_id="me",
    )
    request = parse(encode(header, schema(**fields)))
    wire.hear(Exchange("a", 1, api, version, "me", 1, 0.0), request, None)


def answered(wire: Wire, api: str, version: int, **fields: Any) -> None:
    """Let the wire hear the answer to a request without fields of its own."""
    schema: Any = load_response_schema(KEYS[api], version)
    answer = encode(schema.__header_schema__(correlation_id=i32(1)), schema(**fields))
    request = parse(KEYS[api].to_bytes(2) + version.to_bytes(2) + (1).to_bytes(4) + b"\xff\xff\x00")
    wire.hear(Exchange("a", 1, api, version, "me", 1, 0.0), request, answer)


def join(wire: Wire, member: str, instance: str | None = None) -> None:
    """Let the wire hear a member that joins the group g."""
    heard(
        wire,
        "join_group",
        5,
        group_id="g",
        session_timeout=SIX_S,
        rebalance_timeout=SIX_S,
        member_id=member,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=(),
    )


def test_a_member_is_counted_once(wire: Wire) -> None:
    """It joins without an id first, and then with the one that it was given."""
    join(wire, "")
    join(wire, "m1")
    join(wire, "m1")

    assert wire.groups["g"].members == {"m1"}
    assert wire.groups["g"].session_timeout_ms == 6_000
    assert wire.groups["g"].instance_ids == set()


def test_a_static_member_has_its_name(wire: Wire) -> None:
    """The doctor says whether a restart is a new member."""
    join(wire, "m1", "pod-0")

    assert wire.groups["g"].instance_ids == {"pod-0"}


def test_a_group_of_the_new_protocol_chooses_no_session(wire: Wire) -> None:
    """The broker does, and is asked for it."""
    heard(
        wire,
        "consumer_group_heartbeat",
        0,
        group_id="g",
        member_id="m1",
        member_epoch=i32(0),
        instance_id=None,
        rack_id=None,
        rebalance_timeout=SIX_S,
        subscribed_topic_names=("t",),
        server_assignor=None,
        topic_partitions=(),
    )

    assert (wire.groups["g"].protocol, wire.groups["g"].session_timeout_ms) == ("consumer", None)


@pytest.mark.parametrize("transactional_id", ["orders-a", None])
def test_only_a_transactional_id_has_a_timeout(wire: Wire, transactional_id: str | None) -> None:
    """An idempotent producer asks for an id too, and has no transactions."""
    heard(
        wire,
        "init_producer_id",
        1,
        transactional_id=transactional_id,
        transaction_timeout=SIX_S,
    )

    assert wire.transactions == ({transactional_id: 6_000} if transactional_id else {})


@pytest.mark.parametrize("transactional_id", ["orders-a", None])
def test_a_topic_that_is_written_outside_of_transactions(
    wire: Wire, transactional_id: str | None
) -> None:
    """A producer without a transactional id writes in none."""
    heard(
        wire,
        "produce",
        9,
        transactional_id=transactional_id,
        acks=i16(-1),
        timeout=SIX_S,
        topic_data=(TopicProduceData(name="alerts", partition_data=()),),
    )

    assert wire.written == {"alerts": 1}
    assert wire.outside == (set() if transactional_id else {"alerts"})


def fetch(wire: Wire, offset: int, isolation: int) -> None:
    """Let the wire hear a fetch of the topic that has an id."""

    read = v13.FetchPartition(
        partition=i32(0),
        fetch_offset=i64(offset),
        partition_max_bytes=i32(1),
    )
    heard(
        wire,
        "fetch",
        13,
        max_wait=SIX_S,
        min_bytes=i32(1),
        isolation_level=i8(isolation),
        topics=(v13.FetchTopic(topic_id=TOPIC_ID, partitions=(read,)),),
        forgotten_topics_data=(),
    )


def test_the_first_fetch_of_a_partition_says_where_it_began(wire: Wire) -> None:
    """Later ones are further on; a topic's id is the name that clients were told."""
    wire.proxy.topics[TOPIC_ID] = "t"
    fetch(wire, 5, 1)
    fetch(wire, 9, 0)

    assert wire.first_fetched == {("t", 0): 5}
    assert wire.isolation == {"t": {0, 1}}


def test_a_commit_in_a_transaction_is_told_from_one_outside(wire: Wire) -> None:
    """The highest offset of each partition counts, whatever the request."""

    heard(
        wire,
        "offset_commit",
        8,
        group_id="g",
        member_id="m1",
        topics=(
            outside.OffsetCommitRequestTopic(
                name="t",
                partitions=(
                    outside.OffsetCommitRequestPartition(
                        partition_index=i32(0), committed_offset=i64(9), committed_metadata=None
                    ),
                ),
            ),
        ),
    )
    heard(
        wire,
        "txn_offset_commit",
        3,
        transactional_id="x",
        group_id="g",
        producer_id=i64(1),
        producer_epoch=i16(0),
        topics=(
            inside.TxnOffsetCommitRequestTopic(
                name="t",
                partitions=(
                    inside.TxnOffsetCommitRequestPartition(
                        partition_index=i32(0), committed_offset=i64(4), committed_metadata=None
                    ),
                ),
            ),
        ),
    )

    assert [commit.api for commit in wire.commits] == ["offset_commit", "txn_offset_commit"]
    assert wire.committed == {("t", 0): 9}
    assert isinstance(wire.commits[0], Commit)


def test_a_topic_that_is_not_there_is_noted(wire: Wire) -> None:
    """Its name is mostly a wrong one."""

    topic = v9.MetadataResponseTopic(
        error_code=ErrorCode.unknown_topic_or_partition, name="orders", partitions=()
    )
    answered(
        wire,
        "metadata",
        9,
        throttle_time=SIX_S,
        brokers=(),
        topics=(topic,),
        controller_id=i32(1),
    )

    assert wire.unknown == {"orders"}


def test_a_client_names_its_software(wire: Wire) -> None:
    """The versions that it uses are noted too."""
    heard(
        wire,
        "api_versions",
        3,
        client_software_name="librdkafka",
        client_software_version="2.16.0",
    )

    assert wire.clients == {"me": "librdkafka 2.16.0"}
    assert wire.versions == {"api_versions": {3}}


def test_a_request_that_cannot_be_read_is_left_out(wire: Wire) -> None:
    """The application's connection goes on as if nobody listened."""
    request = parse(KEYS["join_group"].to_bytes(2) + (5).to_bytes(2) + bytes(4) + b"\xff\xff")

    wire.hear(Exchange("a", 1, "join_group", 5, None, 1, 0.0), request, None)

    assert wire.groups == {}
