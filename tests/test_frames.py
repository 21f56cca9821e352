"""What the proxy reads of Kafka's frames, and what it refuses to have read."""

import contextlib
import io
import struct
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.schema.types import BrokerId, TopicName
from kio.serial import entity_writer
from kio.static.primitive import i16, i32, i32Timedelta

from streamgate.faults.wire.frames import (
    ADDRESSED,
    API_VERSIONS,
    DESCRIBE_CLUSTER,
    FIND_COORDINATOR,
    METADATA,
    PRODUCE,
    Request,
    UnreadableError,
    decode,
    encode,
    error_of,
    parse,
    refused,
    told,
)

NEVER = i32Timedelta.parse(timedelta(0))
ALL = [(key, version) for key, name in api_key_map.items() for version in schema_name_map[name]]


def place(_node_id: int, _host: str, port: int) -> tuple[str, int]:
    """Where a client is to find a broker."""
    return "127.0.0.1", port + 1


def request(api_key: int, version: int, body: bytes = b"", client_id: bytes | None = b"me") -> bytes:
    """A request's frame: a flexible header has one byte more, and a client id that is not compact either."""
    named = struct.pack(">h", -1) if client_id is None else struct.pack(">h", len(client_id)) + client_id
    tags = b"\0" if load_request_schema(api_key, version).__flexible__ else b""
    return struct.pack(">hhi", api_key, version, 7) + named + tags + body


def answer(api_key: int, version: int, **fields: Any) -> bytes:
    """The frame of an answer."""
    schema: Any = load_response_schema(api_key, version)
    return encode(schema.__header_schema__(correlation_id=i32(7)), schema(**fields))


def nested(key: int, version: int, name: str, /, **fields: Any) -> Any:
    """A part of an answer."""
    return getattr(__import__(load_response_schema(key, version).__module__, fromlist=[name]), name)(**fields)


@pytest.mark.parametrize("client_id", [None, b"", b"me"])
def test_a_header_is_read(client_id: bytes | None) -> None:
    """In every version of every API that has a schema."""
    for api_key, version in ALL:
        read = parse(request(api_key, version, b"body", client_id))

        assert (read.api, read.version, read.correlation_id) == (api_key_map[api_key], version, 7)
        assert read.client_id == (None if client_id is None else client_id.decode())
        assert read.frame[read.body :] == b"body"


@pytest.mark.parametrize("version", sorted(schema_name_map["produce"]))
@pytest.mark.parametrize("transactional_id", [None, "t" * 200])
@pytest.mark.parametrize("acks", [0, 1, -1])
def test_who_wants_no_acknowledgement_is_not_answered(version: int, transactional_id: str | None, acks: int) -> None:
    """All other requests are."""
    schema: Any = load_request_schema(PRODUCE, version)
    buffer = io.BytesIO()
    message = schema(transactional_id=transactional_id, acks=i16(acks), timeout=NEVER, topic_data=())
    entity_writer(schema)(buffer, message)
    read = parse(request(PRODUCE, version, buffer.getvalue()))

    assert read.is_answered == (acks != 0)
    assert read.decoded() == message
    assert parse(request(METADATA, 1)).is_answered


@pytest.mark.parametrize("version", sorted(schema_name_map["metadata"]))
def test_brokers_move(version: int) -> None:
    """Metadata names the proxy's addresses instead of the brokers' own."""
    broker = nested(METADATA, version, "MetadataResponseBroker", node_id=BrokerId(3), host="kafka", port=i32(9092))
    frame = answer(METADATA, version, brokers=(broker,), **given_by_default(METADATA, version))
    asked = parse(request(METADATA, version))

    header, message = decode(asked, told(asked, frame, place))

    assert header.correlation_id == 7
    assert [(node.node_id, node.host, node.port) for node in message.brokers] == [(3, "127.0.0.1", 9093)]


def given_by_default(api_key: int, version: int) -> dict[str, Any]:
    """The fields of an answer that have no default, other than those that name brokers."""
    values = {
        "throttle_time": NEVER,
        "error_code": ErrorCode.none,
        "error_message": None,
        "cluster_id": "c",
        "controller_id": BrokerId(3),
        "topics": (),
    }
    fields = load_response_schema(api_key, version).__dataclass_fields__
    return {name: value for name, value in values.items() if name in fields}


@pytest.mark.parametrize("version", sorted(schema_name_map["find_coordinator"]))
def test_coordinators_move(version: int) -> None:
    """In both forms of the answer; where there is none, nobody is named."""
    where = {"node_id": BrokerId(3), "host": "kafka", "port": i32(9092)}
    nobody = {"node_id": BrokerId(-1), "host": "", "port": i32(-1)}
    fields = given_by_default(FIND_COORDINATOR, version)
    if version < 4:
        frames = [answer(FIND_COORDINATOR, version, **fields, **each) for each in (where, nobody)]
    else:
        rest = {"error_code": ErrorCode.none, "error_message": None}
        both = [nested(FIND_COORDINATOR, version, "Coordinator", key="k", **rest, **each) for each in (where, nobody)]
        frames = [answer(FIND_COORDINATOR, version, coordinators=tuple(both), **fields)]
    asked = parse(request(FIND_COORDINATOR, version))

    messages = [decode(asked, told(asked, frame, place))[1] for frame in frames]

    nodes = messages if version < 4 else messages[0].coordinators
    assert [(node.host, node.port) for node in nodes] == [("127.0.0.1", 9093), ("", -1)]


@pytest.mark.parametrize("version", sorted(schema_name_map["describe_cluster"]))
def test_the_cluster_moves(version: int) -> None:
    """DescribeCluster has broker ids instead of node ids."""
    extra = {"is_fenced": False} if version >= 2 else {}
    broker = nested(
        DESCRIBE_CLUSTER, version, "DescribeClusterBroker", broker_id=BrokerId(3), host="k", port=i32(9092), **extra
    )
    frame = answer(DESCRIBE_CLUSTER, version, brokers=(broker,), **given_by_default(DESCRIBE_CLUSTER, version))
    asked = parse(request(DESCRIBE_CLUSTER, version))

    assert [node.port for node in decode(asked, told(asked, frame, place))[1].brokers] == [9093]


@pytest.mark.parametrize("version", sorted(schema_name_map["api_versions"]))
def test_no_version_is_offered_that_cannot_be_read(version: int) -> None:
    """The highest are cut to those that have a schema, unknown APIs are left out, and the lowest stay as the broker says."""
    offered = [(PRODUCE, 0, 99), (METADATA, 0, 12), (9999, 0, 1)]
    keys = tuple(
        nested(API_VERSIONS, version, "ApiVersion", api_key=i16(k), min_version=i16(low), max_version=i16(high))
        for k, low, high in offered
    )
    frame = answer(API_VERSIONS, version, api_keys=keys, **given_by_default(API_VERSIONS, version))
    asked = parse(request(API_VERSIONS, version))

    found = decode(asked, told(asked, frame, place))[1].api_keys

    newest = max(schema_name_map["produce"])
    assert [(api.api_key, api.min_version, api.max_version) for api in found] == [(0, 0, newest), (3, 0, 12)]


def test_an_unknown_version_is_answered_in_the_oldest() -> None:
    """A broker that does not know a client's ApiVersions says so in version 0."""
    frame = answer(API_VERSIONS, 0, error_code=ErrorCode.unsupported_version, api_keys=())
    asked = parse(request(API_VERSIONS, 4))

    assert told(asked, frame, place) == frame


def test_what_names_no_broker_travels_as_it_is() -> None:
    """It is not even read."""
    for api_key, version in ALL:
        if api_key not in {*ADDRESSED, API_VERSIONS}:
            assert told(Request(api_key, version, 7, None, b"", 0), b"\0\0\0\7rest", place) == b"\0\0\0\7rest"


@pytest.mark.parametrize("frame", [b"", b"\0\3\0\1", struct.pack(">hhi", 9999, 0, 1), struct.pack(">hhi", 3, 99, 1)])
def test_what_has_no_schema_is_refused(frame: bytes) -> None:
    """And so is what is no frame."""
    with pytest.raises(UnreadableError):
        parse(frame)


@given(st.binary(max_size=64))
def test_any_request_is_read_or_refused(frame: bytes) -> None:
    """No bytes make it fall over."""
    try:
        read = parse(frame)
        assert isinstance(read.is_answered, bool)
        read.decoded()
    except UnreadableError:
        pass


@given(st.sampled_from([*ADDRESSED, API_VERSIONS]), st.data())
def test_any_answer_is_read_or_refused(api_key: int, data: st.DataObject) -> None:
    """No bytes make it fall over."""
    version = data.draw(st.sampled_from(sorted(schema_name_map[api_key_map[api_key]])))
    with contextlib.suppress(UnreadableError):
        told(Request(api_key, version, 7, None, b"", 0), data.draw(st.binary(max_size=200)), place)


def produced(version: int) -> bytes:
    """A Produce of nothing much to two partitions of one topic."""
    key = {"topic_id": UUID(int=5)} if version >= 13 else {"name": TopicName("t")}
    schema: Any = load_request_schema(PRODUCE, version)
    module = __import__(schema.__module__, fromlist=["*"])
    data = tuple(module.PartitionProduceData(index=i32(index), records=b"x") for index in (0, 3))
    message = schema(acks=i16(-1), timeout=NEVER, topic_data=(module.TopicProduceData(**key, partition_data=data),))
    body = io.BytesIO()
    entity_writer(schema)(body, message)
    return request(PRODUCE, version, body.getvalue())


@pytest.mark.parametrize("version", [version for key, version in ALL if key == PRODUCE])
def test_a_refusal_names_every_partition(version: int) -> None:
    """It answers the request that it is for, in its version, with the error and no offset."""
    asked = parse(produced(version))

    header, message = decode(asked, refused(asked, ErrorCode.not_enough_replicas))

    assert error_of(message) == ErrorCode.not_enough_replicas
    assert header.correlation_id == asked.correlation_id
    (topic,) = message.responses
    assert [(p.index, p.error_code, p.base_offset) for p in topic.partition_responses] == [
        (0, ErrorCode.not_enough_replicas, -1),
        (3, ErrorCode.not_enough_replicas, -1),
    ]


@pytest.mark.parametrize(
    ("key", "error"), [(PRODUCE, ErrorCode.topic_already_exists), (METADATA, ErrorCode.not_enough_replicas)]
)
def test_no_refusal_that_no_broker_gives(key: int, error: ErrorCode) -> None:
    """An error that is none of a leader's, or of another API, is refused itself."""
    with pytest.raises(ValueError, match="is not refused with"):
        refused(parse(request(key, 9)), error)


def test_where_all_is_well_there_is_no_error() -> None:
    """Neither at the top nor in a part."""
    schema: Any = load_response_schema(26, 3)
    well = schema(throttle_time=NEVER, error_code=ErrorCode.none)

    assert error_of(well) == 0
    assert error_of(schema(throttle_time=NEVER, error_code=ErrorCode.invalid_producer_epoch)) == 47
    assert (
        error_of(
            decode(parse(request(METADATA, 1)), answer(METADATA, 1, brokers=(), controller_id=BrokerId(1), topics=()))[
                1
            ]
        )
        == 0
    )
