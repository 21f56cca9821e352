"""Raw Fetch: the headers of record batches, which say who wrote them and whether inside a
transaction.

No client library shows producer id, epoch and control batches to its user, so this speaks the
protocol itself, with kio's schemas, over its own connections. Batch layout: Kafka protocol guide,
"Record Batch".
"""

import io
import socket
import ssl
import struct
import time
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kio.schema.describe_log_dirs.v1 import request as sizes_request
from kio.schema.describe_log_dirs.v1 import response as sizes_response
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v2.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v2.response import FindCoordinatorResponse
from kio.schema.list_transactions.v0.request import ListTransactionsRequest
from kio.schema.list_transactions.v0.response import ListTransactionsResponse
from kio.schema.metadata.v9 import request as metadata_request
from kio.schema.metadata.v9 import response as metadata_response
from kio.schema.sasl_authenticate.v1 import request as auth_request
from kio.schema.sasl_authenticate.v1 import response as auth_response
from kio.schema.sasl_handshake.v1 import request as handshake_request
from kio.schema.sasl_handshake.v1 import response as handshake_response
from kio.schema.types import TopicName
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i32

from upheld.errors import MachineProblem
from upheld.kafka import fetch, offsets
from upheld.kafka.fetch import Fetched

# Base offset … record count: the 61 bytes of a record batch header.
HEADER = struct.Struct(">qiibIhiqqqhii")
CLIENT = "upheld"
CORRELATION_BYTES = 4
TRANSACTIONAL, CONTROL = 0x10, 0x20
LED_S, POLL_S = 30.0, 0.02  # by then a partition has another leader; how often it is asked for
OUT_OF_RANGE = 1
# COORDINATOR_LOAD_IN_PROGRESS; COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR
NOT_LOADED, MOVED = (
    14,
    {15, 16},
)
NOT_LED = {3, 5, 6}  # UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """One record batch of one partition."""

    base_offset: int
    last_offset: int
    producer_id: int
    producer_epoch: int
    transactional: bool
    control: Literal["commit", "abort"] | None


class RawConnection:
    """One connection to one node; what is asked of it, it has to lead or to coordinate."""

    def __init__(self, address: str, client: Mapping[str, str], *, timeout_s: float = 10) -> None:
        host, _, port = address.rpartition(":")
        try:
            plain = socket.create_connection((host.strip("[]"), int(port)), timeout_s)
        except OSError as error:
            raise MachineProblem(f"{address} does not answer: {error}") from None
        protocol = client.get("security.protocol", "PLAINTEXT").upper()
        self._socket: socket.socket = (
            _secured(plain, host, client) if protocol.endswith("SSL") else plain
        )
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0
        if protocol.startswith("SASL"):
            self._authenticate(client)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _ask(self, request: Any, response_type: type[Any]) -> Any:
        self._correlation_id += 1
        buffer = io.BytesIO()
        header = request.__header_schema__(
            request_api_key=request.__api_key__,
            request_api_version=request.__version__,
            correlation_id=i32(self._correlation_id),
            client_id=CLIENT,
        )
        entity_writer(type(header))(buffer, header)
        entity_writer(type(request))(buffer, request)
        reply = self._exchange(buffer.getvalue())
        _, offset = entity_reader(response_type.__header_schema__)(reply, 0)
        return entity_reader(response_type)(reply, offset)[0]

    def _exchange(self, body: bytes) -> bytes:
        """Send a request, and return its answer from the correlation id on."""
        self._socket.sendall(struct.pack(">i", len(body)) + body)
        (size,) = struct.unpack(">i", self._receive(4))
        return self._receive(size)

    def _receive(self, size: int) -> bytes:
        parts = []
        while size:
            part = self._socket.recv(min(size, 1 << 20))
            if not part:
                raise MachineProblem("the broker closed the connection in the middle of an answer")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _authenticate(self, client: Mapping[str, str]) -> None:
        mechanism = client.get("sasl.mechanism", client.get("sasl.mechanisms", ""))
        if mechanism.upper() != "PLAIN":
            raise MachineProblem(f"raw reads speak SASL PLAIN only, not {mechanism}")
        self._ask(
            handshake_request.SaslHandshakeRequest(mechanism="PLAIN"),
            handshake_response.SaslHandshakeResponse,
        )
        secret = f"\0{client['sasl.username']}\0{client['sasl.password']}".encode()
        answer = self._ask(
            auth_request.SaslAuthenticateRequest(auth_bytes=secret),
            auth_response.SaslAuthenticateResponse,
        )
        if answer.error_code:
            raise MachineProblem(
                f"the broker refused the credentials for {client['sasl.username']}"
            )

    def fetch(self, topic: str, offsets: Mapping[int, int], max_bytes: int) -> dict[int, Fetched]:
        """Fetch from these offsets, decided or not; partition -> what the answer says of it."""
        self._correlation_id += 1
        reply = self._exchange(
            fetch.request(self._correlation_id, CLIENT, topic, offsets, max_bytes)
        )
        return fetch.answer(reply[CORRELATION_BYTES:])

    def log_bytes(self, topics: Mapping[str, int]) -> int:
        """How many bytes of these topics (name -> partitions) lie on this node."""
        asked = tuple(
            sizes_request.DescribableLogDirTopic(
                topic=TopicName(name), partitions=tuple(map(i32, range(partitions)))
            )
            for name, partitions in topics.items()
        )
        answer = self._ask(
            sizes_request.DescribeLogDirsRequest(topics=asked),
            sizes_response.DescribeLogDirsResponse,
        )
        return sum(
            p.partition_size
            for result in answer.results
            for topic in result.topics
            for p in topic.partitions
        )

    def committed(
        self, group: str, topics: Mapping[str, int], *, stable: bool
    ) -> offsets.Committed:
        """The offsets of a group that this node coordinates, in topics (name -> partitions)."""
        self._correlation_id += 1
        return offsets.answer(
            self._exchange(
                offsets.request(self._correlation_id, CLIENT, group, topics, stable=stable)
            )
        )

    def coordinator(self, group: str) -> tuple[int, str]:
        """The error, if any, and the address of the node that coordinates a group."""
        answer = self._ask(FindCoordinatorRequest(key=group), FindCoordinatorResponse)
        return int(answer.error_code), f"{answer.host}:{answer.port}"

    def transactions(self, *states: str) -> tuple[Any, ...]:
        """Every transactional id that this node coordinates or has not forgotten yet; or those in
        one of these states.
        """
        answer = self._ask(ListTransactionsRequest(state_filters=states), ListTransactionsResponse)
        return tuple(answer.transaction_states)

    def metadata(self, *topics: str) -> Any:
        """What this node knows of the cluster's nodes, and of these topics."""
        named = tuple(
            metadata_request.MetadataRequestTopic(name=TopicName(topic)) for topic in topics
        )
        request = metadata_request.MetadataRequest(
            topics=named,
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
        )
        return self._ask(request, metadata_response.MetadataResponse)


class RawClient:
    """A connection to every node of a cluster; each is asked for what it leads or coordinates."""

    def __init__(self, bootstrap: str, client: Mapping[str, str]) -> None:
        self._bootstrap, self._client = bootstrap.split(","), client
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
        if address not in self._open:
            self._open[address] = RawConnection(address, self._client)
        return self._open[address]

    def _leave(self, address: str) -> None:
        if connection := self._open.pop(address, None):
            connection.close()

    def _look_up(self, *topics: str) -> Any:
        """What the first node that answers says, its word on the nodes kept."""
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
        """The leader of each partition that has one."""
        if topic not in self._leaders:
            found = self._look_up(topic).topics[0].partitions
            self._leaders[topic] = {
                int(each.partition_index): self.nodes[each.leader_id]
                for each in found
                if each.leader_id in self.nodes
            }
        return self._leaders[topic]

    def fetch(self, topic: str, offsets: Mapping[int, int], max_bytes: int) -> dict[int, Fetched]:
        """Fetch each partition from its leader; one that has none is waited for.

        Partition -> what the answer says of it.
        """
        found, deadline = dict[int, Fetched](), time.monotonic() + LED_S
        while True:
            leaders = self._led_by(topic)
            for address in dict.fromkeys(leaders.values()):
                own = {
                    p: o for p, o in offsets.items() if leaders.get(p) == address and p not in found
                }
                try:
                    answers = self._connection(address).fetch(topic, own, max_bytes) if own else {}
                # It has died, and somebody else leads what it led.
                except (OSError, MachineProblem):
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
        """Last stable offset and high watermark of every partition, in one round trip to each
        leader.

        Each is asked from where it ended when it was asked last, so that no record comes with the
        answer.
        """
        ended = self._ends.get(topic, {})
        answers = self.fetch(
            topic, {p: max(offset, ended.get(p, 0)) for p, offset in from_offsets.items()}, 1
        )
        # The topic was made anew.
        if gone := [p for p, answer in answers.items() if answer.error_code == OUT_OF_RANGE]:
            answers |= self.fetch(topic, {p: from_offsets[p] for p in gone}, 1)
        ends = {p: answer.high_watermark for p, answer in answers.items()}
        self._ends[topic] = ended | ends
        return {p: answer.last_stable_offset for p, answer in answers.items()}, ends

    def committed(
        self, group: str, topics: Mapping[str, int], *, stable: bool
    ) -> dict[str, int] | None:
        """The group's offsets, topic-partition -> 0 where it has none; None while they are not
        known, or may still change.
        """
        try:
            found = self._coordinated(group).committed(group, topics, stable=stable)
        except (OSError, MachineProblem):  # it has died, and another node takes the group over
            self._leave(self._coordinators.pop(group, ""))
            return None
        if found.error_code in MOVED:
            del self._coordinators[group]
        if found.error_code in MOVED | {NOT_LOADED} or found.partition_errors:
            return None
        if found.error_code:
            raise MachineProblem(
                f"the broker says of the group {group}: {_named(found.error_code)}"
            )
        return {
            f"{topic}-{partition}": max(0, offset)
            for (topic, partition), offset in found.offsets.items()
        }

    def _coordinated(self, group: str) -> RawConnection:
        """A connection to the node that coordinates a group.

        Raises MachineProblem while there is none.
        """
        if group not in self._coordinators:
            self._look_up()
            error, address = self._connection(next(iter(self.nodes.values()))).coordinator(group)
            if error:
                raise MachineProblem(f"the group {group} has no coordinator: {_named(error)}")
            self._coordinators[group] = address
        return self._connection(self._coordinators[group])

    def batches(self, topic: str, offsets: dict[int, int]) -> Iterator[tuple[int, BatchHeader]]:
        """Every batch header at or above these offsets, with its partition; moves the offsets
        on.
        """
        unread = dict(offsets)
        while unread:
            for partition, answer in self.fetch(topic, unread, 1 << 20).items():
                headers = list(parse(answer.records))
                for header in headers:
                    if header.last_offset >= offsets[partition]:
                        offsets[partition] = unread[partition] = header.last_offset + 1
                        yield partition, header
                if not headers or offsets[partition] >= answer.high_watermark:
                    unread.pop(partition, None)

    def log_bytes(self, topics: Mapping[str, int]) -> int:
        """How many bytes of these topics (name -> partitions) lie on all nodes together, copies
        too.
        """
        return sum(self._connection(address).log_bytes(topics) for address in self._all())

    def undecided(self) -> set[int]:
        """The producer ids whose transaction is open and has no outcome yet, by the word of its
        coordinator.
        """
        return {
            int(state.producer_id)
            for address in self._all()
            for state in self._connection(address).transactions("Ongoing")
        }

    def transactional_ids(self) -> set[str]:
        """Every transactional id that a node coordinates or has not forgotten yet."""
        return {
            str(state.transactional_id)
            for address in self._all()
            for state in self._connection(address).transactions()
        }

    def _all(self) -> tuple[str, ...]:
        self._look_up()
        return tuple(self.nodes.values())

    def coordinated(self) -> dict[int, dict[str, int]]:
        """Of each node that answers, which transactional ids it coordinates, with the producer id
        of each.
        """
        found = dict[int, dict[str, int]]()
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


def _named(error_code: int) -> str:
    known = {int(error): error.name for error in ErrorCode}
    return known.get(error_code, str(error_code))


def is_left_open(above: Iterable[BatchHeader], undecided: Container[int]) -> bool:
    """Whether what stands above the last stable offsets is of transactions without an outcome,
    markers of aborts aside.

    A marker of a commit there says that readers cannot see yet what was decided before.
    """
    open_or_committed = [batch for batch in above if batch.control != "abort"]
    return bool(open_or_committed) and all(
        batch.control is None and batch.producer_id in undecided for batch in open_or_committed
    )


def parse(data: bytes) -> Iterator[BatchHeader]:
    """Read the batch headers in a Fetch answer; a last batch that is cut short is left for the next
    answer.
    """
    at = 0
    while at + HEADER.size <= len(data):
        base, length, _, _, _, attributes, last_delta, _, _, producer_id, epoch, _, _ = (
            HEADER.unpack_from(data, at)
        )
        if at + 12 + length > len(data):
            return
        control: Literal["commit", "abort"] | None = None
        if attributes & CONTROL:
            control = "commit" if _control_type(data, at + HEADER.size) else "abort"
        yield BatchHeader(
            base, base + last_delta, producer_id, epoch, bool(attributes & TRANSACTIONAL), control
        )
        at += 12 + length


def _control_type(data: bytes, at: int) -> int:
    """The type in a control record's key: 0 abort, 1 commit.

    The record's varints before it have unknown widths.
    """
    at += _varint_width(data, at) + 1  # length, attributes
    for _ in range(3):  # timestamp delta, offset delta, key length
        at += _varint_width(data, at)
    return int(struct.unpack_from(">hh", data, at)[1])


def _varint_width(data: bytes, at: int) -> int:
    width = 1
    while data[at + width - 1] & 0x80:
        width += 1
    return width


def _secured(plain: socket.socket, host: str, client: Mapping[str, str]) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=client.get("ssl.ca.location"))
    if client.get("ssl.endpoint.identification.algorithm", "https") == "none":
        context.check_hostname = False
    if "ssl.certificate.location" in client:
        context.load_cert_chain(
            client["ssl.certificate.location"],
            client.get("ssl.key.location"),
            client.get("ssl.key.password"),
        )
    try:
        return context.wrap_socket(plain, server_hostname=host)
    except ssl.SSLError as error:
        raise MachineProblem(f"no TLS connection to {host}: {error.reason}") from None
