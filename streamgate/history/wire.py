"""Raw Fetch: the headers of record batches, which say who wrote them and whether inside a transaction.

No client library shows producer id, epoch and control batches to its user, so this speaks the protocol itself, with kio's
schemas, over its own connection. Batch layout: Kafka protocol guide, "Record Batch".
"""

import io
import socket
import ssl
import struct
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from kio.schema.fetch.v11 import request as fetch_request
from kio.schema.fetch.v11 import response as fetch_response
from kio.schema.list_transactions.v0.request import ListTransactionsRequest
from kio.schema.list_transactions.v0.response import ListTransactionsResponse
from kio.schema.sasl_authenticate.v1 import request as auth_request
from kio.schema.sasl_authenticate.v1 import response as auth_response
from kio.schema.sasl_handshake.v1 import request as handshake_request
from kio.schema.sasl_handshake.v1 import response as handshake_response
from kio.schema.types import TopicName
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i8, i32, i32Timedelta, i64

from streamgate.errors import MachineProblem

HEADER = struct.Struct(">qiibIhiqqqhii")  # base offset … record count: the 61 bytes of a record batch header
TRANSACTIONAL, CONTROL = 0x10, 0x20


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """One record batch of one partition."""

    base_offset: int
    last_offset: int
    producer_id: int
    producer_epoch: int
    transactional: bool
    control: Literal["commit", "abort"] | None


class Wire:
    """One connection to one broker, which must lead the partitions asked for (each of our shared brokers is one node)."""

    def __init__(self, address: str, client: Mapping[str, str], *, timeout_s: float = 10) -> None:
        host, _, port = address.rpartition(":")
        try:
            plain = socket.create_connection((host.strip("[]"), int(port)), timeout_s)
        except OSError as error:
            raise MachineProblem(f"{address} does not answer: {error}") from None
        protocol = client.get("security.protocol", "PLAINTEXT").upper()
        self._socket: socket.socket = _secured(plain, host, client) if protocol.endswith("SSL") else plain
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
            client_id="streamgate",
        )
        entity_writer(type(header))(buffer, header)
        entity_writer(type(request))(buffer, request)
        body = buffer.getvalue()
        self._socket.sendall(struct.pack(">i", len(body)) + body)
        (size,) = struct.unpack(">i", self._receive(4))
        reply = self._receive(size)
        _, offset = entity_reader(response_type.__header_schema__)(reply, 0)
        return entity_reader(response_type)(reply, offset)[0]

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
            auth_request.SaslAuthenticateRequest(auth_bytes=secret), auth_response.SaslAuthenticateResponse
        )
        if answer.error_code:
            raise MachineProblem(f"the broker refused the credentials for {client['sasl.username']}")

    def fetch(self, topic: str, offsets: Mapping[int, int], max_bytes: int) -> dict[int, Any]:
        """Fetch from these offsets under read_committed; partition -> the answer's partition data."""
        partitions = tuple(
            fetch_request.FetchPartition(partition=i32(p), fetch_offset=i64(o), partition_max_bytes=i32(max_bytes))
            for p, o in offsets.items()
        )
        request = fetch_request.FetchRequest(
            max_wait=i32Timedelta.parse(timedelta(0)),
            min_bytes=i32(0),
            isolation_level=i8(0),
            topics=(fetch_request.FetchTopic(topic=TopicName(topic), partitions=partitions),),
            forgotten_topics_data=(),
        )
        answer = self._ask(request, fetch_response.FetchResponse)
        return {p.partition_index: p for t in answer.responses for p in t.partitions}

    def ends(self, topic: str, from_offsets: Mapping[int, int]) -> tuple[dict[int, int], dict[int, int]]:
        """Last stable offset and high watermark of every partition, in one round trip."""
        answers = self.fetch(topic, from_offsets, 1)
        return (
            {p: a.last_stable_offset for p, a in answers.items()},
            {p: a.high_watermark for p, a in answers.items()},
        )

    def batches(self, topic: str, offsets: dict[int, int]) -> Iterator[tuple[int, BatchHeader]]:
        """Every batch header at or above these offsets, with its partition; moves the offsets on."""
        unread = dict(offsets)
        while unread:
            for partition, answer in self.fetch(topic, unread, 1 << 20).items():
                headers = list(parse(answer.records or b""))
                for header in headers:
                    if header.last_offset >= offsets[partition]:
                        offsets[partition] = unread[partition] = header.last_offset + 1
                        yield partition, header
                if not headers or offsets[partition] >= answer.high_watermark:
                    unread.pop(partition, None)

    def undecided(self) -> set[int]:
        """The producer ids whose transaction is open and has no outcome yet, by the word of its coordinator."""
        return {int(state.producer_id) for state in self._transactions("Ongoing")}

    def transactional_ids(self) -> set[str]:
        """Every transactional id that this broker coordinates or has not forgotten yet."""
        return {str(state.transactional_id) for state in self._transactions()}

    def _transactions(self, *states: str) -> Iterable[Any]:
        answer = self._ask(ListTransactionsRequest(state_filters=states), ListTransactionsResponse)
        return tuple(answer.transaction_states)


def is_left_open(above: Iterable[BatchHeader], undecided: Container[int]) -> bool:
    """Whether what stands above the last stable offsets is of transactions without an outcome, markers of aborts aside.

    A marker of a commit there says that readers cannot see yet what was decided before.
    """
    open_or_committed = [batch for batch in above if batch.control != "abort"]
    return bool(open_or_committed) and all(
        batch.control is None and batch.producer_id in undecided for batch in open_or_committed
    )


def parse(data: bytes) -> Iterator[BatchHeader]:
    """Read the batch headers in a Fetch answer; a last batch that is cut short is left for the next answer."""
    at = 0
    while at + HEADER.size <= len(data):
        base, length, _, _, _, attributes, last_delta, _, _, producer_id, epoch, _, _ = HEADER.unpack_from(data, at)
        if at + 12 + length > len(data):
            return
        control: Literal["commit", "abort"] | None = None
        if attributes & CONTROL:
            control = "commit" if _control_type(data, at + HEADER.size) else "abort"
        yield BatchHeader(base, base + last_delta, producer_id, epoch, bool(attributes & TRANSACTIONAL), control)
        at += 12 + length


def _control_type(data: bytes, at: int) -> int:
    """The type in a control record's key: 0 abort, 1 commit. The record's varints before it have unknown widths."""
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
            client["ssl.certificate.location"], client.get("ssl.key.location"), client.get("ssl.key.password")
        )
    try:
        return context.wrap_socket(plain, server_hostname=host)
    except ssl.SSLError as error:
        raise MachineProblem(f"no TLS connection to {host}: {error.reason}") from None
