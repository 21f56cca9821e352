"""Groups as their coordinators know them: assignments and committed offsets.

Each reader of a group in the harness goes through here. A group may also hold topics of its own,
such as changelogs and leader topics. So a reader names the inputs that it asks about, and what a
member holds besides stands apart.

There are three protocols of groups, and each has its own request:

- classic: the members assign partitions among themselves (DescribeGroups).
- consumer: the broker assigns partitions (KIP-848, ConsumerGroupDescribe).
- streams: the broker assigns tasks of Kafka Streams (KIP-1071, StreamsGroupDescribe). A task of a
  subtopology has the same partition of each of its source topics.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal, NamedTuple

from kio.schema.api_versions.v0.request import ApiVersionsRequest
from kio.schema.api_versions.v0.response import ApiVersionsResponse
from kio.schema.consumer_group_describe.v0 import request as consumer_request
from kio.schema.consumer_group_describe.v0 import response as consumer_response
from kio.schema.consumer_protocol_assignment.v0.data import ConsumerProtocolAssignment
from kio.schema.describe_configs.v4 import request as read_request
from kio.schema.describe_configs.v4 import response as read_response
from kio.schema.describe_groups.v5 import request as classic_request
from kio.schema.describe_groups.v5 import response as classic_response
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1 import request as alter_request
from kio.schema.incremental_alter_configs.v1 import response as alter_response
from kio.schema.list_groups.v4.request import ListGroupsRequest
from kio.schema.list_groups.v4.response import ListGroupsResponse
from kio.schema.streams_group_describe.v0 import request as streams_request
from kio.schema.streams_group_describe.v0 import response as streams_response
from kio.schema.types import GroupId
from kio.serial import entity_reader
from kio.static.primitive import i8

from upheld.errors import MachineProblem
from upheld.kafka.connection import RawConnection
from upheld.kafka.raw import RawClient, named

NO_ERROR: Final = int(ErrorCode.none)
NOT_FOUND: Final = int(ErrorCode.group_id_not_found)
NOT_LOADED: Final = int(ErrorCode.coordinator_load_in_progress)
MOVED: Final = {int(ErrorCode.coordinator_not_available), int(ErrorCode.not_coordinator)}
AGREED: Final = {"Stable", "Empty"}
DEAD: Final = "Dead"  # the state of a group that the classic protocol does not know
# What members of the classic protocol call it if they share partitions of topics.
SHARES_PARTITIONS: Final = "consumer"
_GROUP: Final = i8(32)  # the type of a resource that has settings
_SET: Final = i8(0)  # an operation on a setting
_VERSION_BYTES: Final = 2  # before an assignment of the classic protocol


Protocol = Literal["classic", "consumer", "streams"]


class Session(NamedTuple):
    """A group's protocol, and its session and heartbeat in milliseconds.

    Both times are 0 if each member has its own.
    """

    protocol: Protocol
    session_ms: int
    heartbeat_ms: int

    @property
    def as_settings(self) -> dict[str, str]:
        """Return the settings of the group."""
        return {
            f"{self.protocol}.session.timeout.ms": str(self.session_ms),
            f"{self.protocol}.heartbeat.interval.ms": str(self.heartbeat_ms),
        }


class Member(NamedTuple):
    """A member of a group: the partitions (topic-partition) that it holds, sorted."""

    inputs: tuple[str, ...]  # of those that were asked about
    others: tuple[str, ...]


class Described(NamedTuple):
    """A group's protocol and state, and the partitions that each of its members holds."""

    protocol: Protocol
    error_code: int
    state: str
    held: tuple[tuple[str, ...], ...]


class Groups:
    """A reader of the groups of a cluster."""

    def __init__(self, raw: RawClient) -> None:
        self._raw = raw
        self._offered: dict[str, frozenset[int]] = {}  # address -> the APIs of the node

    def committed(
        self, group: str, inputs: Mapping[str, int], *, stable: bool
    ) -> dict[str, int] | None:
        """Return a group's offsets of inputs (name to partitions); 0 where it has none.

        It is None while the offsets are not known, or, if `stable`, may still change.
        """
        try:
            found = self._raw.coordinator_of(group).committed(group, inputs, stable=stable)
        except (OSError, MachineProblem):  # it has died, and another node takes the group over
            self._raw.leave_coordinator(group)
            return None
        if not self._is_known(group, found.error_code) or found.partition_errors:
            return None
        return {
            f"{topic}-{partition}": max(0, offset)
            for (topic, partition), offset in found.offsets.items()
        }

    def members(self, group: str, inputs: Iterable[str]) -> list[Member] | None:
        """Return each member of a group, sorted by the inputs that it holds.

        It is None while the members do not agree on an assignment.

        Args:
            group: The group.
            inputs: Each partition (topic-partition) that the reader asks about.
        """
        try:
            found = self._described(self._raw.coordinator_of(group), group)
        except (OSError, MachineProblem):
            self._raw.leave_coordinator(group)
            return None
        if not self._is_known(group, found.error_code) or found.state not in AGREED:
            return None
        asked = set(inputs)
        return sorted(
            Member(
                inputs=tuple(place for place in held if place in asked),
                others=tuple(place for place in held if place not in asked),
            )
            for held in found.held
        )

    def names(self) -> set[str]:
        """Return the names of all groups, whatever their protocol."""
        return {
            str(found.group_id)
            for connection in self._raw.all_nodes()
            for found in connection.ask(ListGroupsRequest(), ListGroupsResponse).groups
        }

    def session(self, group: str) -> Session | None:
        """Return the protocol of a group, and the session that it gives its members.

        It is None while the coordinator does not tell.
        """
        try:
            node = self._raw.coordinator_of(group)
            found = self._described(node, group)
            if not self._is_known(group, found.error_code):
                return None
            if found.protocol == "classic":
                return Session("classic", 0, 0)
            settings = _settings(node, group)
        except (OSError, MachineProblem):
            self._raw.leave_coordinator(group)
            return None
        return Session(
            found.protocol,
            int(settings[f"{found.protocol}.session.timeout.ms"]),
            int(settings[f"{found.protocol}.heartbeat.interval.ms"]),
        )

    def set_session(self, group: str, session: Session) -> None:
        """Set the session of a group's members; each learns it by its next heartbeat.

        Raises:
            MachineProblem: The broker refuses it.
        """
        changes = tuple(
            alter_request.AlterableConfig(name=name, config_operation=_SET, value=value)
            for name, value in session.as_settings.items()
        )
        resource = alter_request.AlterConfigsResource(
            resource_type=_GROUP, resource_name=group, configs=changes
        )
        request = alter_request.IncrementalAlterConfigsRequest(
            resources=(resource,), validate_only=False
        )
        node = self._raw.coordinator_of(group)
        (answer,) = node.ask(request, alter_response.IncrementalAlterConfigsResponse).responses
        if answer.error_code != NO_ERROR:
            raise MachineProblem(
                f"the broker does not set a session of {session.session_ms} ms for the group "
                f"{group}: {named(answer.error_code)}"
            )

    def _is_known(self, group: str, error_code: int) -> bool:
        """Return whether the coordinator could answer.

        Raises:
            MachineProblem: It refuses to.
        """
        if error_code in MOVED:
            self._raw.leave_coordinator(group)
        if error_code in MOVED | {NOT_LOADED}:
            return False
        if error_code != NO_ERROR:
            raise MachineProblem(f"the broker says of the group {group}: {named(error_code)}")
        return True

    def _described(self, coordinator: RawConnection, group: str) -> Described:
        """Ask by each protocol until one knows the group, and by the classic one first.

        Most groups are of that, and each look costs one request then. To it, a group of another
        protocol is dead, and so is one that nobody has joined yet. The latter is one of the classic
        protocol without members.
        """
        classic = _by_the_classic_protocol(coordinator, group)
        if classic.state != DEAD:
            return classic
        offered = self._apis(coordinator)
        if consumer_request.ConsumerGroupDescribeRequest.__api_key__ in offered:
            found = _by_the_consumer_protocol(coordinator, group)
            if found.error_code != NOT_FOUND:
                return found
        if streams_request.StreamsGroupDescribeRequest.__api_key__ in offered:
            found = _by_the_streams_protocol(coordinator, group)
            if found.error_code != NOT_FOUND:
                return found
        return classic._replace(state="Empty")

    def _apis(self, node: RawConnection) -> frozenset[int]:
        """Return the APIs that a node has; an older broker lacks those of newer protocols."""
        if node.address not in self._offered:
            answer = node.ask(ApiVersionsRequest(), ApiVersionsResponse)
            self._offered[node.address] = frozenset(int(api.api_key) for api in answer.api_keys)
        return self._offered[node.address]


def _settings(node: RawConnection, group: str) -> dict[str, str]:
    resource = read_request.DescribeConfigsResource(
        resource_type=_GROUP, resource_name=group, configuration_keys=None
    )
    request = read_request.DescribeConfigsRequest(resources=(resource,))
    (found,) = node.ask(request, read_response.DescribeConfigsResponse).results
    if found.error_code != NO_ERROR:
        raise MachineProblem(
            f"the broker does not tell the settings of the group {group}: {named(found.error_code)}"
        )
    return {each.name: each.value or "" for each in found.configs}


def _by_the_classic_protocol(node: RawConnection, group: str) -> Described:
    request = classic_request.DescribeGroupsRequest(
        groups=(GroupId(group),), include_authorized_operations=False
    )
    (found,) = node.ask(request, classic_response.DescribeGroupsResponse).groups
    members = found.members if found.protocol_type == SHARES_PARTITIONS else ()
    return Described(
        "classic",
        int(found.error_code),
        found.group_state,
        tuple(_assigned(member.member_assignment) for member in members),
    )


def _assigned(assignment: bytes) -> tuple[str, ...]:
    """Return the partitions of an assignment that a member wrote for another one."""
    if len(assignment) <= _VERSION_BYTES:
        return ()
    read = entity_reader(ConsumerProtocolAssignment)
    found, _ = read(assignment, _VERSION_BYTES)
    return _sorted((each.topic, each.partitions) for each in found.assigned_partitions)


def _by_the_consumer_protocol(node: RawConnection, group: str) -> Described:
    request = consumer_request.ConsumerGroupDescribeRequest(
        group_ids=(GroupId(group),), include_authorized_operations=False
    )
    (found,) = node.ask(request, consumer_response.ConsumerGroupDescribeResponse).groups
    return Described(
        "consumer",
        int(found.error_code),
        found.group_state,
        tuple(
            _sorted(
                (each.topic_name, each.partitions) for each in member.assignment.topic_partitions
            )
            for member in found.members
        ),
    )


def _by_the_streams_protocol(node: RawConnection, group: str) -> Described:
    request = streams_request.StreamsGroupDescribeRequest(
        group_ids=(GroupId(group),), include_authorized_operations=False
    )
    (found,) = node.ask(request, streams_response.StreamsGroupDescribeResponse).groups
    subtopologies = (found.topology.subtopologies if found.topology else None) or ()
    sources = {
        each.subtopology_id: (
            *each.source_topics,
            *(topic.name for topic in each.repartition_source_topics),
        )
        for each in subtopologies
    }
    return Described(
        "streams",
        int(found.error_code),
        found.group_state,
        tuple(
            _sorted(
                (topic, task.partitions)
                for task in member.assignment.active_tasks
                for topic in sources.get(task.subtopology_id, ())
            )
            for member in found.members
        ),
    )


def _sorted(held: Iterable[tuple[str, Iterable[int]]]) -> tuple[str, ...]:
    """Name partitions in full, topic-partition, in order."""

    def names() -> Iterator[str]:
        for topic, partitions in held:
            yield from (f"{topic}-{partition}" for partition in partitions)

    return tuple(sorted(names()))
