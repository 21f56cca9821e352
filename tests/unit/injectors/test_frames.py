"""The proxy reads some of Kafka's frames, and refuses others."""

import contextlib
import io
import struct
from dataclasses import MISSING, fields, is_dataclass, replace
from datetime import timedelta
from typing import Any, get_args, get_origin, get_type_hints
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.schema.types import BrokerId, ProducerId
from kio.serial import entity_writer
from kio.static.primitive import i16, i32, i32Timedelta, i64, i64Timedelta

from upheld.injectors.proxy.errors import (
    GIVEN,
    LAST,
    Moment,
    is_given,
    refusal,
    translated,
)
from upheld.injectors.proxy.frames import (
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
    fall_back,
    parse,
    parts,
    places,
    rewrite,
    stand_in,
)
from upheld.injectors.proxy.rules import PLACED, Exchange, Rule

NEVER = i32Timedelta.parse(timedelta(0))
ALL = [(key, version) for key, name in api_key_map.items() for version in schema_name_map[name]]


def place(_node_id: int, _host: str, port: int) -> tuple[str, int]:
    """Return the address at which a client is to find a broker."""
    return "127.0.0.1", port + 1


def request(
    api_key: int, version: int, body: bytes = b"", client_id: bytes | None = b"me"
) -> bytes:
    """Return the frame of a request.

    A flexible header has one byte more, and a client id that is not compact either.
    """
    named = (
        struct.pack(">h", -1)
        if client_id is None
        else struct.pack(">h", len(client_id)) + client_id
    )
    tags = b"\0" if load_request_schema(api_key, version).__flexible__ else b""
    return struct.pack(">hhi", api_key, version, 7) + named + tags + body


def answer(api_key: int, version: int, **fields: Any) -> bytes:
    """Return the frame of an answer."""
    schema: Any = load_response_schema(api_key, version)
    return encode(schema.__header_schema__(correlation_id=i32(7)), schema(**fields))


def nested(key: int, version: int, name: str, /, **fields: Any) -> Any:
    """Return a part of an answer."""
    return getattr(
        __import__(load_response_schema(key, version).__module__, fromlist=[name]), name
    )(**fields)


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
def test_who_wants_no_acknowledgement_is_not_answered(
    version: int, transactional_id: str | None, acks: int
) -> None:
    """All other requests are."""
    schema: Any = load_request_schema(PRODUCE, version)
    buffer = io.BytesIO()
    message = schema(
        transactional_id=transactional_id, acks=i16(acks), timeout=NEVER, topic_data=()
    )
    entity_writer(schema)(buffer, message)
    read = parse(request(PRODUCE, version, buffer.getvalue()))

    assert read.is_answered == (acks != 0)
    assert read.decoded() == message
    assert parse(request(METADATA, 1)).is_answered


@pytest.mark.parametrize("version", sorted(schema_name_map["metadata"]))
def test_brokers_move(version: int) -> None:
    """Metadata names the proxy's addresses instead of the brokers' own."""
    broker = nested(
        METADATA,
        version,
        "MetadataResponseBroker",
        node_id=BrokerId(3),
        host="kafka",
        port=i32(9092),
    )
    frame = answer(METADATA, version, brokers=(broker,), **given_by_default(METADATA, version))
    asked = parse(request(METADATA, version))

    header, message = decode(asked, rewrite(asked, frame, place))

    assert header.correlation_id == 7
    assert [(node.node_id, node.host, node.port) for node in message.brokers] == [
        (3, "127.0.0.1", 9093)
    ]


def given_by_default(api_key: int, version: int) -> dict[str, Any]:
    """Return an answer's fields without a default that do not name brokers."""
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
        both = [
            nested(FIND_COORDINATOR, version, "Coordinator", key="k", **rest, **each)
            for each in (where, nobody)
        ]
        frames = [answer(FIND_COORDINATOR, version, coordinators=tuple(both), **fields)]
    asked = parse(request(FIND_COORDINATOR, version))

    messages = [decode(asked, rewrite(asked, frame, place))[1] for frame in frames]

    nodes = messages if version < 4 else messages[0].coordinators
    assert [(node.host, node.port) for node in nodes] == [("127.0.0.1", 9093), ("", -1)]


@pytest.mark.parametrize("version", sorted(schema_name_map["describe_cluster"]))
def test_the_cluster_moves(version: int) -> None:
    """DescribeCluster has broker ids instead of node ids."""
    extra = {"is_fenced": False} if version >= 2 else {}
    broker = nested(
        DESCRIBE_CLUSTER,
        version,
        "DescribeClusterBroker",
        broker_id=BrokerId(3),
        host="k",
        port=i32(9092),
        **extra,
    )
    frame = answer(
        DESCRIBE_CLUSTER, version, brokers=(broker,), **given_by_default(DESCRIBE_CLUSTER, version)
    )
    asked = parse(request(DESCRIBE_CLUSTER, version))

    assert [node.port for node in decode(asked, rewrite(asked, frame, place))[1].brokers] == [9093]


@pytest.mark.parametrize("version", sorted(schema_name_map["api_versions"]))
def test_no_version_is_offered_that_cannot_be_read(version: int) -> None:
    """The highest versions are cut to those that have a schema.

    Unknown APIs are left out, and the lowest versions stay as the broker says.
    """
    offered = [(PRODUCE, 0, 99), (METADATA, 0, 12), (9999, 0, 1)]
    keys = tuple(
        nested(
            API_VERSIONS,
            version,
            "ApiVersion",
            api_key=i16(k),
            min_version=i16(low),
            max_version=i16(high),
        )
        for k, low, high in offered
    )
    frame = answer(API_VERSIONS, version, api_keys=keys, **given_by_default(API_VERSIONS, version))
    asked = parse(request(API_VERSIONS, version))

    found = decode(asked, rewrite(asked, frame, place))[1].api_keys

    newest = max(schema_name_map["produce"])
    assert [(api.api_key, api.min_version, api.max_version) for api in found] == [
        (0, 0, newest),
        (3, 0, 12),
    ]


def test_an_unknown_version_is_answered_in_the_oldest() -> None:
    """A broker that does not know a client's ApiVersions says so in version 0."""
    frame = answer(API_VERSIONS, 0, error_code=ErrorCode.unsupported_version, api_keys=())
    asked = parse(request(API_VERSIONS, 4))

    assert rewrite(asked, frame, place) == frame


UNKNOWN = [-1, max(schema_name_map["api_versions"]) + 1, 99, 2**15 - 1]


@pytest.mark.parametrize("version", UNKNOWN)
def test_a_newer_question_for_versions_is_answered_as_a_broker_does(version: int) -> None:
    """The client is told the range of ApiVersions, and asks again (KIP-511)."""
    head = struct.pack(">hhih", API_VERSIONS, version, 7, 2) + b"me"
    asked = parse(head + (b"\0whatever" if version > 0 else b""))
    offered = [(PRODUCE, 0, 9), (API_VERSIONS, 0, 99)]
    keys = tuple(
        nested(API_VERSIONS, 0, "ApiVersion", api_key=k, min_version=low, max_version=high)
        for k, low, high in offered
    )
    own = answer(API_VERSIONS, 0, error_code=ErrorCode.none, api_keys=keys)

    assert (asked.is_unknown, asked.version, asked.client_id) == (True, version, "me")
    assert not parse(stand_in(asked)).is_unknown
    newest = max(schema_name_map["api_versions"])
    told = struct.pack(">ihihhh", 7, 35, 1, API_VERSIONS, 0, newest)
    assert fall_back(own) == told
    assert rewrite(asked, told, place) == told


def test_what_names_no_broker_travels_as_it_is() -> None:
    """It is not even read."""
    for api_key, version in ALL:
        if api_key not in {*ADDRESSED, API_VERSIONS}:
            assert (
                rewrite(Request(api_key, version, 7, None, b"", 0), b"\0\0\0\7rest", place)
                == b"\0\0\0\7rest"
            )


@pytest.mark.parametrize(
    "frame", [b"", b"\0\3\0\1", struct.pack(">hhi", 9999, 0, 1), struct.pack(">hhi", 3, 99, 1)]
)
def test_what_has_no_schema_is_refused(frame: bytes) -> None:
    """And so is what is no frame."""
    with pytest.raises(UnreadableError):
        parse(frame)


def test_a_version_without_a_schema_is_named() -> None:
    """The reader sees which API of which version the proxy does not know."""
    with pytest.raises(UnreadableError, match="metadata v63, of which the proxy has no schema"):
        parse(struct.pack(">hhi", METADATA, 63, 1))
    with pytest.raises(UnreadableError, match="API 250 v1, of which the proxy has no schema"):
        parse(struct.pack(">hhi", 250, 1, 1))


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
        rewrite(
            Request(api_key, version, 7, None, b"", 0), data.draw(st.binary(max_size=200)), place
        )


def asking(
    api: str, version: int, where: dict[Any, list[int]] | None = None, **said: Any
) -> Request:
    """Return a request for these partitions of topics, by name or id, and little else."""
    key = next(key for key, name in api_key_map.items() if name == api)
    body = io.BytesIO()
    schema = load_request_schema(key, version)
    said = {"transactional_id": "t", "acks": i16(-1)} | said
    entity_writer(schema)(body, filled(schema, where or {"t": [0, 3]}, said))
    return parse(request(key, version, body.getvalue()))


def filled(schema: Any, where: Any, said: dict[str, Any]) -> Any:
    """Return a message or a part of one, filled where it lists topics or partitions."""
    plain = {
        i32Timedelta: NEVER,
        i64Timedelta: i64Timedelta.parse(timedelta(0)),
        bool: True,
        ProducerId: ProducerId(7),
    }
    plain |= {i16: i16(0), i32: i32(0), i64: i64(0)}
    kinds = get_type_hints(schema)
    values = dict[str, Any]()
    for field in fields(schema):
        name = field.name
        kind = kinds[field.name]
        if name in said:
            values[name] = said[name]
        elif get_origin(kind) is tuple and is_dataclass(get_args(kind)[0]):
            pairs = where.items() if isinstance(where, dict) else [(number, ()) for number in where]
            keys = ("name", "topic_id") if isinstance(where, dict) else ("index", "partition_index")
            values[name] = tuple(
                filled(get_args(kind)[0], of, said | dict.fromkeys(keys, key)) for key, of in pairs
            )
        elif get_origin(kind) is tuple:
            values[name] = tuple(where)
        elif field.default is MISSING:
            values[name] = None if type(None) in get_args(kind) else plain.get(kind, "x")
    return schema(**values)


def told_of(message: Any) -> list[tuple[Any, int, ErrorCode]]:
    """Return every topic and partition of an answer, with its error."""
    return [
        (
            getattr(topic, "name", None) or topic.topic_id,
            getattr(part, "index", getattr(part, "partition_index", None)),
            getattr(part, "error_code", getattr(part, "partition_error_code", None)),
        )
        for topic in parts(message)
        for part in parts(topic)
    ]


WHERE = {  # topics, by what they are called
    kind: st.dictionaries(
        keys, st.lists(st.integers(0, 2**31 - 1), min_size=1, unique=True), min_size=1, max_size=4
    )
    for kind, keys in {"name": st.text(min_size=1, max_size=20), "id": st.uuids()}.items()
}
BY_ID = {"produce": 13, "offset_commit": 10}  # from there on
REFUSALS = [
    (api, version, moment, error)
    for api, moments in GIVEN.items()
    for version in sorted(schema_name_map[api])
    for moment, errors in moments.items()
    for error in sorted(errors)
    if version <= LAST.get(api, version)
]


@given(st.sampled_from(REFUSALS), st.data())
def test_a_refusal_repeats_what_it_refuses(
    refused: tuple[str, int, Moment, ErrorCode], data: st.DataObject
) -> None:
    """A refusal answers its request, in the request's version.

    It has the error at every place that was asked for, and at no other.
    """
    api, version, moment, error = refused
    where = data.draw(WHERE["id" if version >= BY_ID.get(api, version + 1) else "name"])
    asked = asking(api, version, where)

    header, message = decode(asked, refusal(asked, moment, error))

    assert header.correlation_id == asked.correlation_id
    error = translated(asked, error)
    assert error_of(message) == error
    expected = [(topic, number, error) for topic, numbers in where.items() for number in numbers]
    assert told_of(message) == (expected if api in PLACED else [])
    assert places(asked) == {(topic, number) for topic, number, _ in told_of(message)}
    assert {getattr(message, name, -1) for name in ("producer_id", "producer_epoch")} == {-1}


@pytest.mark.parametrize("version", sorted(schema_name_map["produce"]))
def test_what_is_refused_when_it_is_there_stays_where_it_is(version: int) -> None:
    """The broker's own answer says at which offset, and so does the one in its place."""
    topic: dict[Any, list[int]] = {UUID(int=5) if version >= 13 else "t": [0, 3]}
    asked = asking("produce", version, topic)
    _, own = decode(asked, refusal(asked, "after", ErrorCode.request_timed_out))
    there = [
        replace(part, error_code=ErrorCode.none, base_offset=i64(41 + part.index))
        for part in parts(parts(own)[0])
    ]
    own = replace(own, responses=(replace(parts(own)[0], partition_responses=tuple(there)),))

    _, message = decode(
        asked, refusal(asked, "after", ErrorCode.not_enough_replicas_after_append, own)
    )

    assert [part.base_offset for part in parts(parts(message)[0])] == [41, 44]
    assert {error for _, _, error in told_of(message)} == {
        ErrorCode.not_enough_replicas_after_append
    }


@given(
    st.sampled_from(sorted(api_key_map.values())),
    st.sampled_from(["before", "after"]),
    st.sampled_from(ErrorCode),
)
def test_no_error_that_no_broker_gives(api: str, moment: Moment, error: ErrorCode) -> None:
    """Any other API, moment or error is refused itself."""
    if error in GIVEN.get(api, {}).get(moment, ()):
        return
    with pytest.raises(ValueError, match="no broker could make this"):
        Rule("a", api, "refuse", moment, error=error)


@pytest.mark.parametrize(
    ("asked", "moment", "error"),
    [
        (asking("produce", 9, acks=i16(0)), "before", ErrorCode.not_leader_or_follower),
        (asking("produce", 9, acks=i16(1)), "before", ErrorCode.not_enough_replicas),
        (asking("produce", 9, acks=i16(1)), "after", ErrorCode.not_enough_replicas_after_append),
        (asking("init_producer_id", 4, transactional_id=None), "before", ErrorCode.not_coordinator),
        (asking("add_partitions_to_txn", 4), "before", ErrorCode.not_coordinator),
    ],
)
def test_no_error_that_no_broker_gives_there(
    asked: Request, moment: Moment, error: ErrorCode
) -> None:
    """No error is given that no broker gives there.

    It is none where no client waits for replicas, no coordinator is asked, or a broker asks
    another.
    """
    assert not is_given(asked, moment, error)
    with pytest.raises(ValueError, match="no broker could make this"):
        refusal(asked, moment, error)


@pytest.mark.parametrize(
    ("version", "told"),
    [
        (0, ErrorCode.coordinator_not_available),
        (1, ErrorCode.coordinator_not_available),
        (2, ErrorCode.coordinator_load_in_progress),
    ],
)
def test_an_old_version_is_refused_as_a_broker_refuses_it(version: int, told: ErrorCode) -> None:
    """A TxnOffsetCommit below version 2 knows no coordinator that loads."""
    asked = asking("txn_offset_commit", version, {"t": [0, 3]})
    loading = ErrorCode.coordinator_load_in_progress

    assert is_given(asked, "before", loading)
    assert translated(asked, loading) is told
    _, message = decode(asked, refusal(asked, "before", loading))
    assert {error for _, _, error in told_of(message)} == {told}


def test_where_all_is_well_there_is_no_error() -> None:
    """Neither at the top nor in a part."""
    schema: Any = load_response_schema(26, 3)
    well = schema(throttle_time=NEVER, error_code=ErrorCode.none)

    assert error_of(well) == 0
    assert error_of(schema(throttle_time=NEVER, error_code=ErrorCode.invalid_producer_epoch)) == 47
    assert (
        error_of(
            decode(
                parse(request(METADATA, 1)),
                answer(METADATA, 1, brokers=(), controller_id=BrokerId(1), topics=()),
            )[1]
        )
        == 0
    )


def meets(
    rule: Rule, *asked: tuple[str, str, str], names: dict[Any, str] | None = None
) -> list[int]:
    """Return the numbers of the requests that a rule meets.

    A request is given as API, client and topic.
    """
    met = list[int]()
    for number, (api, client_id, topic) in enumerate(asked, 1):
        request = asking(api, max(schema_name_map[api]) if names else 3, {topic: [0]})
        rule.count(
            Exchange("a", 1, api, request.version, client_id, number, 0.0),
            request,
            dict(names or {}),
        )
        met += [number] if rule.exchange and rule.exchange.number == number else []
    return met


def test_a_rule_names_a_client_or_a_topic() -> None:
    """And counts what concerns these alone."""
    asked = [
        ("produce", "x", "t"),
        ("produce", "y", "u"),
        ("produce", "x", "u"),
        ("produce", "y", "t"),
    ]

    assert meets(Rule("a", "produce", "close", number=3), *asked) == [3]
    assert meets(Rule("a", "produce", "close", client_id="y", number=2), *asked) == [4]
    assert meets(Rule("a", "produce", "close", topic="u", number=2), *asked) == [3]
    assert meets(Rule("a", "produce", "close", client_id="y", topic="t"), *asked) == [4]
    assert meets(Rule("b", "produce", "close"), *asked) == []


def test_a_topic_is_known_by_its_id() -> None:
    """Clients that have been told it ask by it."""
    known = UUID(int=1)
    other = UUID(int=2)
    asked: list[Any] = [("produce", "x", other), ("produce", "x", known)]

    assert meets(Rule("a", "produce", "close", topic="t"), *asked, names={known: "t"}) == [2]


def test_a_rule_names_a_transaction() -> None:
    """A rule names the n-th transaction from here on.

    A commit that is asked for again does not end another one.
    """
    asked = [
        (api, "x", "t")
        for api in ("produce", "end_txn", "end_txn", "produce", "produce", "end_txn", "produce")
    ]

    assert meets(Rule("a", "produce", "close", number=2, transaction=2), *asked) == [5]
    assert meets(Rule("a", "end_txn", "close", transaction=2), *asked) == [6]
    assert meets(Rule("a", "produce", "close", transaction=3), *asked) == [7]


def test_a_rule_counts_the_requests_that_no_broker_refuses_so() -> None:
    """Without them, a row would say that the design sent none."""
    rule = Rule("a", "produce", "refuse", error=ErrorCode.not_enough_replicas)
    for number, acks in enumerate((0, 1, -1, 1), 1):
        asked = asking("produce", 3, acks=i16(acks))
        rule.count(Exchange("a", 1, "produce", 3, "x", number, 0.0), asked, {})

    assert rule.exchange
    assert (rule.exchange.number, rule.passed_over) == (3, 3)


def test_what_names_no_topic_has_no_rule_for_one() -> None:
    """It would never fire."""
    with pytest.raises(ValueError, match="does not say which topics"):
        Rule("a", "end_txn", "close", topic="t")
