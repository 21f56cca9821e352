"""Groups of each protocol, as the answers of their coordinator describe them."""

import io
from types import SimpleNamespace
from typing import Any

import pytest
from kio.schema.api_versions.v0 import request as apis_request
from kio.schema.consumer_group_describe.v0 import request as consumer_request
from kio.schema.consumer_protocol_assignment.v0 import data
from kio.schema.describe_configs.v4 import request as settings_request
from kio.schema.describe_groups.v5 import request as classic_request
from kio.schema.streams_group_describe.v0 import request as streams_request
from kio.schema.types import TopicName
from kio.serial import entity_writer
from kio.static.primitive import i32

from upheld.errors import MachineProblem
from upheld.kafka.groups import Groups, Member, Session

NOT_FOUND = 69
LOADING = 14
DENIED = 30
INPUTS = ["in-0", "in-1"]
Asked = type[Any]


def described(state: str = "Stable", error: int = 0, **more: Any) -> Any:
    """Return the answer that describes one group."""
    group = SimpleNamespace(error_code=error, group_state=state, **{"members": (), **more})
    return SimpleNamespace(groups=(group,))


def classic(**more: Any) -> Any:
    """Return a group of the classic protocol, whose members hold these partitions."""
    held = more.pop("held", ())
    members = tuple(SimpleNamespace(member_assignment=assignment(each)) for each in held)
    return described(members=members, **{"protocol_type": "consumer", **more})


def assignment(held: dict[str, list[int]]) -> bytes:
    """Return the bytes of an assignment, with the version before them."""
    if not held:
        return b""
    buffer = io.BytesIO()
    buffer.write(b"\0\3")
    partitions = tuple(
        data.TopicPartition(topic=TopicName(topic), partitions=tuple(map(i32, each)))
        for topic, each in held.items()
    )
    entity_writer(data.ConsumerProtocolAssignment)(
        buffer, data.ConsumerProtocolAssignment(assigned_partitions=partitions)
    )
    return buffer.getvalue()


CONSUMER = consumer_request.ConsumerGroupDescribeRequest
STREAMS = streams_request.StreamsGroupDescribeRequest
CLASSIC = classic_request.DescribeGroupsRequest
SETTINGS = settings_request.DescribeConfigsRequest
APIS = SimpleNamespace(
    api_keys=[SimpleNamespace(api_key=each.__api_key__) for each in (CONSUMER, STREAMS, CLASSIC)]
)


class Node:
    """A coordinator that has an answer to each request."""

    address = "node:9092"

    def __init__(self, answers: dict[Asked, Any]) -> None:
        self._answers: dict[Asked, Any] = {
            apis_request.ApiVersionsRequest: APIS,
            CONSUMER: described(error=NOT_FOUND),
            STREAMS: described(error=NOT_FOUND, topology=None),
            CLASSIC: classic(state="Dead"),  # as a broker says of groups of other protocols
            **answers,
        }
        self.asked = list[Asked]()

    def ask(self, request: object, _: object) -> Any:
        """Answer."""
        self.asked.append(type(request))
        return self._answers[type(request)]


def groups_of(answers: dict[Asked, Any]) -> Groups:
    """Return a reader of a cluster of one node."""
    node = Node(answers)
    raw: Any = SimpleNamespace(coordinator_of=lambda _: node, leave_coordinator=lambda _: None)
    return Groups(raw)


def test_a_member_of_the_classic_protocol_holds_what_it_was_assigned() -> None:
    """A partition of none of the inputs stands apart, and a member may hold nothing."""
    held = ({"in": [0], "own": [3]}, {"in": [1]}, {})
    groups = groups_of({CLASSIC: classic(held=held)})

    assert groups.members("group", INPUTS) == [
        Member((), ()),
        Member(("in-0",), ("own-3",)),
        Member(("in-1",), ()),
    ]
    assert groups.session("group") == Session("classic", 0, 0)


def test_a_look_at_a_group_of_the_classic_protocol_costs_one_request() -> None:
    """Each start and each look at members asks, and most groups are of that protocol."""
    node = Node({CLASSIC: classic(held=({"in": [0]},))})
    raw: Any = SimpleNamespace(coordinator_of=lambda _: node)

    Groups(raw).members("group", INPUTS)

    assert node.asked == [CLASSIC]


@pytest.mark.parametrize(
    ("found", "members"),
    [
        (classic(state="PreparingRebalance"), None),
        (classic(state="Dead"), []),
        (classic(state="Stable", held=({"in": [0]},), protocol_type="connect"), []),
        (classic(error=LOADING), None),
    ],
    ids=["they do not agree", "nobody has joined", "another kind of members", "it is loaded"],
)
def test_members_of_the_classic_protocol_have_to_agree(
    found: Any, members: list[Member] | None
) -> None:
    """Nothing is known while they do not; a group without members has none."""
    assert groups_of({CLASSIC: found}).members("group", INPUTS) == members


def test_a_refusal_is_told() -> None:
    """In Kafka's word."""
    groups = groups_of({CLASSIC: classic(error=DENIED)})

    with pytest.raises(MachineProblem, match="group_authorization_failed"):
        groups.members("group", INPUTS)
    assert groups.session("group") is None


def settings(protocol: str, session_ms: int = 45_000, heartbeat_ms: int = 5_000) -> Any:
    """Return the answer that has the settings of a group."""
    said = {
        f"{protocol}.session.timeout.ms": session_ms,
        f"{protocol}.heartbeat.interval.ms": heartbeat_ms,
    }
    configs = [SimpleNamespace(name=name, value=str(value)) for name, value in said.items()]
    return SimpleNamespace(results=(SimpleNamespace(error_code=0, configs=configs),))


def test_the_broker_says_what_a_member_of_the_consumer_protocol_holds() -> None:
    """The session is a setting of the group."""
    held = SimpleNamespace(
        topic_partitions=(
            SimpleNamespace(topic_name="own", partitions=(0,)),
            SimpleNamespace(topic_name="in", partitions=(1, 0)),
        )
    )
    found = described(members=(SimpleNamespace(assignment=held),))
    groups = groups_of({CONSUMER: found, SETTINGS: settings("consumer")})

    assert groups.members("group", INPUTS) == [Member(("in-0", "in-1"), ("own-0",))]
    assert groups.session("group") == Session("consumer", 45_000, 5_000)


def test_a_task_of_kafka_streams_holds_its_partition_of_each_source() -> None:
    """A topic for repartition is a source of the design's own."""
    topology = SimpleNamespace(
        subtopologies=(
            SimpleNamespace(
                subtopology_id="0", source_topics=("in", "table"), repartition_source_topics=()
            ),
            SimpleNamespace(
                subtopology_id="1",
                source_topics=(),
                repartition_source_topics=(SimpleNamespace(name="app-repartition"),),
            ),
        )
    )
    tasks = (
        SimpleNamespace(subtopology_id="0", partitions=(0, 1)),
        SimpleNamespace(subtopology_id="1", partitions=(5,)),
    )
    member = SimpleNamespace(assignment=SimpleNamespace(active_tasks=tasks))
    found = described(members=(member,), topology=topology)
    groups = groups_of({STREAMS: found, SETTINGS: settings("streams")})

    assert groups.members("group", INPUTS) == [
        Member(("in-0", "in-1"), ("app-repartition-5", "table-0", "table-1"))
    ]
    assert groups.session("group") == Session("streams", 45_000, 5_000)
