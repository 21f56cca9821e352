"""The harness reads a group on a broker, whatever the group's protocol is."""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from uuid import uuid4

import pytest
from confluent_kafka import Consumer
from kio.schema.streams_group_heartbeat.v0.request import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    Topology,
)
from kio.schema.streams_group_heartbeat.v0.response import StreamsGroupHeartbeatResponse
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32, i32Timedelta

from upheld.brokers import Broker
from upheld.injectors.proxy.proxy import Proxy
from upheld.kafka.groups import Member, Session
from upheld.kafka.reading import Reading

DEADLINE_S = 30.0
INPUTS = ["held-0", "held-1", "held-2"]


@pytest.fixture
def reading(broker: Broker) -> Iterator[Reading]:
    """Yield a reader of the broker, with a topic to hold and one of the group's own."""
    made = Reading(broker.bootstrap, broker.client)
    made.create({"held": 3, "own": 1})
    yield made
    made.delete(["held", "own"])
    made.close()


def members_once(
    reading: Reading,
    group: str,
    turn: Callable[[], object],
    reached: Callable[[list[Member]], bool],
) -> list[Member] | None:
    """Return the members of a group once they are as expected, or at a deadline."""
    deadline = time.monotonic() + DEADLINE_S
    found: list[Member] | None = None
    while (found is None or not reached(found)) and time.monotonic() < deadline:
        turn()
        found = reading.groups.members(group, INPUTS)
    return found


def is_set(reading: Reading, group: str, session: Session) -> bool:
    """Set the session of a group, and return whether the broker says so by a deadline."""
    reading.groups.set_session(group, session)
    deadline = time.monotonic() + DEADLINE_S
    while reading.groups.session(group) != session and time.monotonic() < deadline:
        time.sleep(0.1)
    return reading.groups.session(group) == session


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_says_who_holds_what(reading: Reading, protocol: str) -> None:
    """A group names each member with the inputs it holds once the members agree.

    A topic of the group's own stands apart. A group without members has none, and is listed.
    """
    group = f"held-{protocol}"
    settings = reading.settings | {"group.id": group, "group.protocol": protocol}
    assert reading.groups.members(group, INPUTS) == []
    members = [Consumer(settings) for _ in range(2)]
    for member in members:
        member.subscribe(["held", "own"])

    def poll() -> None:
        for member in members:
            member.poll(0.05)

    found = members_once(
        reading, group, poll, lambda held: len(held) == 2 and all(each.inputs for each in held)
    )
    assert reading.groups.committed(group, {"held": 3}, stable=True) == dict.fromkeys(INPUTS, 0)
    if protocol == "consumer":
        assert is_set(reading, group, Session("consumer", 2_000, 400))
    else:
        assert reading.groups.session(group) == Session("classic", 0, 0)
    for member in members:
        member.close()

    assert found is not None
    assert sorted(place for member in found for place in member.inputs) == INPUTS
    assert [place for member in found for place in member.others] == ["own-0"]
    assert reading.groups.members(group, INPUTS) == []
    assert group in reading.names().groups


class Streams:
    """A member of a Kafka Streams group that confirms by hand the tasks it was given."""

    def __init__(self, reading: Reading, group: str) -> None:
        self._node = reading.raw.coordinator_of(group)
        self._group = group
        self._id = str(uuid4())
        self._epoch = 0
        self._tasks: tuple[TaskIds, ...] = ()

    def beat(self) -> None:
        """Send one heartbeat, and take the tasks of its answer."""
        sources = Subtopology(
            subtopology_id="0",
            source_topics=(TopicName("held"),),
            state_changelog_topics=(),
            repartition_source_topics=(),
            copartition_groups=(),
        )
        answer = self._node.ask(
            StreamsGroupHeartbeatRequest(
                group_id=GroupId(self._group),
                member_id=self._id,
                member_epoch=i32(self._epoch),
                endpoint_information_epoch=i32(0),
                rebalance_timeout=i32Timedelta.parse(timedelta(seconds=5)),
                topology=None if self._epoch else Topology(epoch=i32(0), subtopologies=(sources,)),
                active_tasks=self._tasks,
                standby_tasks=(),
                warmup_tasks=(),
                process_id=self._id,
                client_tags=(),
                task_offsets=None,
                task_end_offsets=None,
            ),
            StreamsGroupHeartbeatResponse,
        )
        assert not answer.error_code, answer.error_message
        self._epoch = answer.member_epoch
        if answer.active_tasks is not None:
            self._tasks = tuple(
                TaskIds(subtopology_id=each.subtopology_id, partitions=each.partitions)
                for each in answer.active_tasks
            )


def test_a_group_of_kafka_streams_says_who_holds_what(reading: Reading) -> None:
    """A task holds its partition of each source topic of its subtopology."""
    group = "held-streams"
    members = [Streams(reading, group) for _ in range(2)]

    def beat() -> None:
        for member in members:
            member.beat()
        time.sleep(0.1)

    found = members_once(
        reading, group, beat, lambda held: len(held) == 2 and all(each.inputs for each in held)
    )

    assert is_set(reading, group, Session("streams", 2_000, 400))
    assert found is not None
    assert sorted(place for member in found for place in member.inputs) == INPUTS
    assert not any(member.others for member in found)
    assert group in reading.names().groups


def test_a_member_that_the_broker_assigns_passes_the_proxy(
    broker: Broker, reading: Reading
) -> None:
    """The proxy reads its requests, and none is held back for their versions."""
    proxy = Proxy(broker.bootstrap)
    settings = reading.settings | {
        "bootstrap.servers": proxy.door("a"),
        "group.id": "held-behind-the-proxy",
        "group.protocol": "consumer",
    }
    member = Consumer(settings)
    member.subscribe(["held"])

    found = members_once(
        reading,
        "held-behind-the-proxy",
        lambda: member.poll(0.05),
        lambda held: any(each.inputs for each in held),
    )
    member.close()
    trouble = proxy.look()
    asked = {exchange.api for exchange in proxy.shut("a")}
    proxy.close()

    assert found == [Member(tuple(INPUTS), ())]
    assert "consumer_group_heartbeat" in asked
    assert (trouble.failure, trouble.breach) == ("", "")
