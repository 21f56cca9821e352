"""A connection to one node, which speaks Kafka's protocol itself.

Fetch and OffsetFetch are written as bytes; the other requests have kio's schemas.
"""

import io
import socket
import ssl
import struct
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeVar

from kio.schema.describe_log_dirs.v1 import request as sizes_request
from kio.schema.describe_log_dirs.v1 import response as sizes_response
from kio.schema.find_coordinator.v2.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v2.response import FindCoordinatorResponse
from kio.schema.list_transactions.v0.request import ListTransactionsRequest
from kio.schema.list_transactions.v0.response import ListTransactionsResponse, TransactionState
from kio.schema.metadata.v9 import request as metadata_request
from kio.schema.metadata.v9 import response as metadata_response
from kio.schema.sasl_authenticate.v1 import request as auth_request
from kio.schema.sasl_authenticate.v1 import response as auth_response
from kio.schema.sasl_handshake.v1 import request as handshake_request
from kio.schema.sasl_handshake.v1 import response as handshake_response
from kio.schema.types import TopicName
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i32
from kio.static.protocol import RequestPayload, ResponsePayload

from upheld.errors import MachineProblem
from upheld.kafka import fetch, offsets
from upheld.kafka.fetch import Fetched

CLIENT: Final = "upheld"
CORRELATION_BYTES: Final = 4
PIECE_BYTES: Final = 1 << 20
_LENGTH: Final = struct.Struct(">i")  # before each frame

Answer = TypeVar("Answer", bound=ResponsePayload)


class Coordinator(NamedTuple):
    """The address of a group's coordinator, or the error that it has none."""

    error_code: int
    address: str


class RawConnection:
    """One connection to one node, which can be asked for what it leads or coordinates.

    Raises:
        MachineProblem: The node does not answer, or refuses the credentials.
    """

    def __init__(self, address: str, client: Mapping[str, str], *, timeout_s: float = 10) -> None:
        self.address = address
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

    @property
    def is_closed(self) -> bool:
        """Whether nothing can be asked any more."""
        return self._socket.fileno() < 0

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def ask(self, request: RequestPayload, response_type: type[Answer]) -> Answer:
        """Send a request of one of kio's schemas, and return its answer."""
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
        """Send a request, and return its answer from the correlation id on.

        An exception in the middle, such as that of Ctrl-C, ends the connection. The rest of the
        answer would be read as that of the next request.
        """
        try:
            self._socket.sendall(_LENGTH.pack(len(body)) + body)
            (size,) = _LENGTH.unpack(self._receive(_LENGTH.size))
            return self._receive(size)
        except BaseException:
            self.close()
            raise

    def _receive(self, size: int) -> bytes:
        parts = []
        while size:
            part = self._socket.recv(min(size, PIECE_BYTES))
            if not part:
                raise MachineProblem("the broker closed the connection in the middle of an answer")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _authenticate(self, client: Mapping[str, str]) -> None:
        mechanism = client.get("sasl.mechanism", client.get("sasl.mechanisms", ""))
        if mechanism.upper() != "PLAIN":
            raise MachineProblem(f"raw reads speak SASL PLAIN only, not {mechanism}")
        self.ask(
            handshake_request.SaslHandshakeRequest(mechanism="PLAIN"),
            handshake_response.SaslHandshakeResponse,
        )
        secret = f"\0{client['sasl.username']}\0{client['sasl.password']}".encode()
        answer = self.ask(
            auth_request.SaslAuthenticateRequest(auth_bytes=secret),
            auth_response.SaslAuthenticateResponse,
        )
        if answer.error_code:
            raise MachineProblem(
                f"the broker refused the credentials for {client['sasl.username']}"
            )

    def fetch(self, topic: str, offsets: Mapping[int, int], max_bytes: int) -> dict[int, Fetched]:
        """Fetch from these offsets, decided or not; return the answer of each partition."""
        self._correlation_id += 1
        reply = self._exchange(
            fetch.request(self._correlation_id, CLIENT, topic, offsets, max_bytes)
        )
        return fetch.answer(reply[CORRELATION_BYTES:])

    def log_bytes(self, topics: Mapping[str, int]) -> int:
        """Return how many bytes of these topics (name to partitions) lie on this node."""
        asked = tuple(
            sizes_request.DescribableLogDirTopic(
                topic=TopicName(name), partitions=tuple(map(i32, range(partitions)))
            )
            for name, partitions in topics.items()
        )
        answer = self.ask(
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
        """Return the offsets of a group that this node coordinates.

        Args:
            group: The consumer group.
            topics: The topics, name to number of partitions.
            stable: Ask for an error where a transaction may still change an offset.
        """
        self._correlation_id += 1
        return offsets.answer(
            self._exchange(
                offsets.request(self._correlation_id, CLIENT, group, topics, stable=stable)
            )
        )

    def coordinator(self, group: str) -> Coordinator:
        """Return the address of the node that coordinates a group, or the error."""
        answer = self.ask(FindCoordinatorRequest(key=group), FindCoordinatorResponse)
        return Coordinator(int(answer.error_code), f"{answer.host}:{answer.port}")

    def transactions(self, *states: str) -> tuple[TransactionState, ...]:
        """Return the transactions that this node coordinates or has not forgotten yet.

        If states are named, only those in one of them are returned.
        """
        answer = self.ask(ListTransactionsRequest(state_filters=states), ListTransactionsResponse)
        return answer.transaction_states

    def metadata(self, *topics: str) -> metadata_response.MetadataResponse:
        """Return what this node knows of the cluster's nodes, and of these topics."""
        named = tuple(
            metadata_request.MetadataRequestTopic(name=TopicName(topic)) for topic in topics
        )
        request = metadata_request.MetadataRequest(
            topics=named,
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
        )
        return self.ask(request, metadata_response.MetadataResponse)


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
