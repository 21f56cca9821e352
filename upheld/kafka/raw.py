"""A raw client, which asks each node for what it leads or coordinates.

It reads what no client library shows: who wrote a batch, and where a transaction stands.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Final

from kio.schema.errors import ErrorCode
from kio.schema.metadata.v9.response import MetadataResponse

from upheld.errors import MachineProblem
from upheld.kafka.batches import BatchHeader, parse
from upheld.kafka.connection import RawConnection
from upheld.kafka.fetch import Fetched

LED_S: Final = 30.0  # a partition has another leader by then
POLL_S: Final = 0.02
BATCH_BYTES: Final = 1 << 20
NO_BATCH: Final = 1  # bytes: fewer than any batch has
OUT_OF_RANGE: Final = int(ErrorCode.offset_out_of_range)
NOT_LED: Final = {
    int(ErrorCode.unknown_topic_or_partition),
    int(ErrorCode.leader_not_available),
    int(ErrorCode.not_leader_or_follower),
}


class RawClient:
    """A connection to every node of a cluster; each is asked for what is its own."""

    def __init__(self, bootstrap: str, client: Mapping[str, str]) -> None:
        self._bootstrap = bootstrap.split(",")
        self._client = client
        self._open: dict[str, RawConnection] = {}  # address -> its connection
        # topic -> partition -> the address of its leader
        self._leaders: dict[str, dict[int, str]] = {}
        self._ends: dict[str, dict[int, int]] = {}  # topic -> partition -> where it ended last
        self._coordinators: dict[str, str] = {}  # group -> address
        self.nodes: dict[int, str] = {}  # node id -> address
        self._look_up()

    def close(self) -> None:
        """Close the connections."""
        for connection in self._open.values():
            connection.close()

    def _connection(self, address: str) -> RawConnection:
        connection = self._open.get(address)
        if connection is None or connection.is_closed:
            connection = self._open[address] = RawConnection(address, self._client)
        return connection

    def _leave(self, address: str) -> None:
        if connection := self._open.pop(address, None):
            connection.close()

    def _look_up(self, *topics: str) -> MetadataResponse:
        """Return the metadata of the first node that answers, and keep the nodes it names."""
        known = list(dict.fromkeys([*self.nodes.values(), *self._bootstrap]))
        for address in known:
            try:
                found = self._connection(address).metadata(*topics)
            except (OSError, MachineProblem):
                self._leave(address)
                if address == known[-1]:
                    raise
            else:
                self.nodes = {
                    int(node.node_id): f"{node.host}:{node.port}" for node in found.brokers
                }
                return found
        raise AssertionError

    def _led_by(self, topic: str) -> dict[int, str]:
        """Return the address of the leader of each partition that has one."""
        if topic not in self._leaders:
            found = self._look_up(topic).topics[0].partitions
            self._leaders[topic] = {
                int(each.partition_index): self.nodes[each.leader_id]
                for each in found
                if each.leader_id in self.nodes
            }
        return self._leaders[topic]

    def leaders(self, topic: str) -> dict[int, int]:
        """Return the node that leads each partition of a topic now, where one does."""
        found = self._look_up(topic).topics[0].partitions
        return {
            int(each.partition_index): int(each.leader_id)
            for each in found
            if each.leader_id in self.nodes
        }

    def fetch(self, topic: str, offsets: Mapping[int, int], max_bytes: int) -> dict[int, Fetched]:
        """Fetch each partition from its leader, and return the answer of each.

        A partition without a leader is waited for.

        Raises:
            MachineProblem: A partition has no leader after half a minute.
        """
        found: dict[int, Fetched] = {}
        deadline = time.monotonic() + LED_S
        while True:
            leaders = self._led_by(topic)
            for address in dict.fromkeys(leaders.values()):
                own = {
                    p: o for p, o in offsets.items() if leaders.get(p) == address and p not in found
                }
                try:
                    answers = self._connection(address).fetch(topic, own, max_bytes) if own else {}
                except (OSError, MachineProblem):  # it has died, and its partitions get new leaders
                    self._leave(address)
                    continue
                found |= {
                    p: answer for p, answer in answers.items() if answer.error_code not in NOT_LED
                }
            if len(found) == len(offsets):
                return found
            del self._leaders[topic]
            if time.monotonic() > deadline:
                raise MachineProblem(
                    f"topic {topic} has partitions without a leader after {LED_S:g} s"
                )
            time.sleep(POLL_S)

    def ends(
        self, topic: str, from_offsets: Mapping[int, int]
    ) -> tuple[dict[int, int], dict[int, int]]:
        """Return the last stable offset and the high watermark of every partition.

        It takes one round trip to each leader. Each partition is asked from its last known end, so
        that no record comes with the answer.
        """
        ended = self._ends.get(topic, {})
        answers = self.fetch(
            topic, {p: max(offset, ended.get(p, 0)) for p, offset in from_offsets.items()}, NO_BATCH
        )
        # A topic of the same name has been created since.
        if gone := [p for p, answer in answers.items() if answer.error_code == OUT_OF_RANGE]:
            answers |= self.fetch(topic, {p: from_offsets[p] for p in gone}, NO_BATCH)
        ends = {p: answer.high_watermark for p, answer in answers.items()}
        self._ends[topic] = ended | ends
        return {p: answer.last_stable_offset for p, answer in answers.items()}, ends

    def coordinator_of(self, group: str) -> RawConnection:
        """Return a connection to the node that coordinates a group.

        Raises:
            MachineProblem: No node coordinates it now.
        """
        if group not in self._coordinators:
            self._look_up()
            found = self._connection(next(iter(self.nodes.values()))).coordinator(group)
            if found.error_code:
                raise MachineProblem(
                    f"the group {group} has no coordinator: {named(found.error_code)}"
                )
            self._coordinators[group] = found.address
        return self._connection(self._coordinators[group])

    def coordinating_node(self, group: str) -> int:
        """Return the node that coordinates a group.

        Raises:
            MachineProblem: No node coordinates it now.
        """
        address = self.coordinator_of(group).address
        return next(number for number, known in self.nodes.items() if known == address)

    def leave_coordinator(self, group: str) -> None:
        """Forget the node that coordinated a group, and leave it."""
        self._leave(self._coordinators.pop(group, ""))

    def batches(self, topic: str, offsets: dict[int, int]) -> Iterator[tuple[int, BatchHeader]]:
        """Yield every batch header at or above these offsets, with its partition.

        It moves the offsets on.
        """
        unread = dict(offsets)
        while unread:
            for partition, answer in self.fetch(topic, unread, BATCH_BYTES).items():
                headers = list(parse(answer.records))
                for header in headers:
                    if header.last_offset >= offsets[partition]:
                        offsets[partition] = unread[partition] = header.last_offset + 1
                        yield partition, header
                if not headers or offsets[partition] >= answer.high_watermark:
                    unread.pop(partition, None)

    def log_bytes(self, topics: Mapping[str, int]) -> int:
        """Return how many bytes of these topics lie on all nodes together, with replicas.

        Topics are given as name to partitions.
        """
        return sum(connection.log_bytes(topics) for connection in self.all_nodes())

    def undecided(self) -> set[int]:
        """Return the producer ids whose transaction is open, by its coordinator's word."""
        return {
            int(state.producer_id)
            for connection in self.all_nodes()
            for state in connection.transactions("Ongoing")
        }

    def transactional_ids(self) -> set[str]:
        """Return every transactional id that a node coordinates or has not forgotten yet."""
        return {
            str(state.transactional_id)
            for connection in self.all_nodes()
            for state in connection.transactions()
        }

    def all_nodes(self) -> tuple[RawConnection, ...]:
        """Return a connection to each node that lives."""
        self._look_up()
        return tuple(map(self._connection, self.nodes.values()))

    def coordinated(self) -> dict[int, dict[str, int]]:
        """Return the producer ids of the transactional ids that each node coordinates.

        Nodes that do not answer are left out.
        """
        found: dict[int, dict[str, int]] = {}
        for number, address in self.nodes.items():
            try:
                states = self._connection(address).transactions()
            except (OSError, MachineProblem):
                self._leave(address)
            else:
                found[number] = {
                    str(state.transactional_id): int(state.producer_id) for state in states
                }
        return found


def named(error_code: int) -> str:
    """Return Kafka's word for an error, or its number if it has none."""
    known = {int(error): error.name for error in ErrorCode}
    return known.get(error_code, str(error_code))
