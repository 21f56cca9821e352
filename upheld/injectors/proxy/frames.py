"""Kafka's frames between clients and brokers, read with kio's schemas.

The proxy reads each header, and whole messages where an answer names addresses or a rule strikes.
Traps, from the protocol guide and its clients:

- The client id of a flexible header is not compact.
- The answer to ApiVersions always has the oldest header. If the version is not known, it has the
  oldest body too, and the client asks again with a version that it names (KIP-511).
- A Produce that wants no acknowledgement has no answer.
"""

import io
import struct
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from typing import Any, Final, Protocol, TypeVar, cast
from uuid import UUID

from kio.index import KioIndexError, load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError
from kio.serial.readers import Reader, read_compact_string_nullable, read_nullable_legacy_string
from kio.static.primitive import i16, i32
from kio.static.protocol import Entity, Header, RequestPayload, ResponsePayload

from upheld.injectors.proxy.bounds import TooManyError, end_of
from upheld.injectors.proxy.offers import Offer, offer_of

PRODUCE: Final = 0
FETCH: Final = 1
METADATA: Final = 3
FIND_COORDINATOR: Final = 10
API_VERSIONS: Final = 18
DESCRIBE_CLUSTER: Final = 60
UNSUPPORTED_VERSION: Final = 35
CORRELATION_BYTES: Final = 4  # an answer begins with its correlation id
ERROR_BYTES: Final = 2  # after it, in an answer to ApiVersions
ACKS_BYTES: Final = 2
PRODUCE_IS_FLEXIBLE: Final = 9  # from this version on
VERSIONS_ARE_FLEXIBLE: Final = 3  # ApiVersions, from this version on
COORDINATORS_ARE_LISTED: Final = 4  # from this version of FindCoordinator on; before it has one
APIS: Final = 256  # Kafka is far from so many, and from so many versions of one
VERSIONS: Final = 64
NO_CLIENT_ID: Final = b"\xff\xff"
# API key -> the field of an answer that names brokers
ADDRESSED: Final = {
    PRODUCE: "node_endpoints",
    FETCH: "node_endpoints",
    METADATA: "brokers",
    FIND_COORDINATOR: "coordinators",
    DESCRIBE_CLUSTER: "brokers",
}
_HEAD: Final = struct.Struct(">hhi")  # API key, version, correlation id

TopicKey = str | UUID  # a topic's name, or its id
# A broker's id, host and port -> the host and port that a client gets.
Place = Callable[[int, str, int], tuple[str, int]]
Read = TypeVar("Read")
Kind = TypeVar("Kind", bound=Entity)


class _Broker(Entity, Protocol):
    """A broker's address in an answer."""

    host: str
    port: int


class _Topic(Protocol):
    """A topic in an answer to Metadata."""

    name: str


class _Metadata(Protocol):
    """An answer to Metadata."""

    topics: tuple[_Topic, ...] | None  # kio reads a null where the schema has none


class _Api(Entity, Protocol):
    """An API in an answer to ApiVersions."""

    api_key: int
    min_version: int
    max_version: int


class _Versions(Entity, Protocol):
    """An answer to ApiVersions."""

    api_keys: tuple[_Api, ...] | None  # as above


class UnreadableError(Exception):
    """The bytes are no frame that kio's schemas know."""


class NoRequestError(UnreadableError):
    """A client's bytes that any broker would answer with the end of the connection."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request's header; `frame` is the whole request, without its length."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    frame: bytes
    body: int  # where the message begins

    @property
    def api(self) -> str:
        """The API's name in snake case, such as `end_txn`."""
        return api_key_map[self.api_key]

    @property
    def is_answered(self) -> bool:
        """True if the broker answers it: all requests but a Produce with acks=0."""
        return self.api_key != PRODUCE or self.acks != 0

    @property
    def is_unknown(self) -> bool:
        """True for an ApiVersions of no known version, which a broker answers too."""
        return self.api_key == API_VERSIONS and self.version not in _known_versions()

    @property
    def acks(self) -> int:
        """The acknowledgements that a Produce waits for.

        It is 0 for none, 1 for the leader's, and -1 for every replica's.
        """
        is_flexible = self.version >= PRODUCE_IS_FLEXIBLE
        reader = read_compact_string_nullable if is_flexible else read_nullable_legacy_string
        # The transactional id stands before the acks.
        _, at = _read(reader, "a transactional id", self.frame, self.body)
        return int.from_bytes(self.frame[at : at + ACKS_BYTES], signed=True)

    def header(self) -> tuple[Header, int]:
        """Return the header as a message, and the offset after it."""
        schema = schemas(self.api_key, self.version)[0].__header_schema__
        return _entity(schema, self.frame, 0)

    def decoded(self) -> RequestPayload:
        """Return the request's message."""
        return _whole(schemas(self.api_key, self.version)[0], self.frame, self.body)


def parse(frame: bytes) -> Request:
    """Return the header of a request.

    Raises:
        NoRequestError: The frame is no request of any Kafka.
        UnreadableError: The request is newer than kio's schemas, and is no ApiVersions.
    """
    if len(frame) < _HEAD.size:
        raise NoRequestError(f"a request of {len(frame)} bytes")
    api_key, version, correlation_id = _HEAD.unpack_from(frame)
    read_as = version
    if api_key == API_VERSIONS and version not in _known_versions():
        read_as = VERSIONS_ARE_FLEXIBLE if version >= VERSIONS_ARE_FLEXIBLE else 0
    elif not (0 <= api_key < APIS and 0 <= version < VERSIONS):
        raise NoRequestError(f"a request of API {api_key} version {version}")
    schema = schemas(api_key, read_as)[0].__header_schema__
    try:
        header, body = _entity(schema, frame, 0)
    except UnreadableError as error:
        raise NoRequestError(f"a request without a header: {error}") from None
    return Request(api_key, version, correlation_id, header.client_id, frame, body)


def correlation_id_of(frame: bytes) -> int:
    """Return the correlation id of an answer."""
    if len(frame) < CORRELATION_BYTES:
        raise UnreadableError(f"an answer of {len(frame)} bytes")
    return int.from_bytes(frame[:CORRELATION_BYTES], signed=True)


def decode(request: Request, frame: bytes) -> tuple[Header, ResponsePayload]:
    """Return header and message of the answer to a request."""
    version = request.version
    if request.api_key == API_VERSIONS:
        error = frame[CORRELATION_BYTES : CORRELATION_BYTES + ERROR_BYTES]
        if int.from_bytes(error, signed=True) == UNSUPPORTED_VERSION:
            version = 0
    schema = schemas(request.api_key, version)[1]
    header, at = _entity(schema.__header_schema__, frame, 0)
    return header, _whole(schema, frame, at)


def error_of(message: Entity) -> int:
    """Return the first error code in an answer, wherever it stands; 0 if it has none."""
    values = [getattr(message, field.name) for field in fields(message)]
    found = [int(value) for value in values if isinstance(value, ErrorCode)]
    found += [
        error_of(cast(Entity, part))
        for value in values
        if isinstance(value, tuple)
        for part in value
        if is_dataclass(part)
    ]
    return next((code for code in found if code), 0)


def encode(header: Entity, message: Entity) -> bytes:
    """Return the frame of a request or an answer."""
    buffer = io.BytesIO()
    entity_writer(type(header))(buffer, header)
    entity_writer(type(message))(buffer, message)
    return buffer.getvalue()


def parts(message: Entity) -> tuple[Any, ...]:
    """Return the first list in a message, such as its topics, or a topic's partitions."""
    return next(
        (
            value
            for field in fields(message)
            if isinstance(value := getattr(message, field.name), tuple)
        ),
        (),
    )


def places(request: Request) -> set[tuple[TopicKey, int]]:
    """Return the topics, by name or id, and partitions that a request lists."""
    return {
        (
            getattr(topic, "name", None) or getattr(topic, "topic_id", None) or "",
            getattr(part, "index", getattr(part, "partition_index", part)),
        )
        for topic in parts(request.decoded())
        for part in parts(topic)
    }


def names(metadata: Entity) -> dict[TopicKey, str]:
    """Return the names of the topics in an answer to Metadata, by their ids."""
    named = {}
    for topic in cast(_Metadata, metadata).topics or ():
        if topic_id := getattr(topic, "topic_id", None):
            named[topic_id] = topic.name
    return named


def offers(versions: Entity) -> dict[str, Offer]:
    """Return what a broker's answer to ApiVersions offers; nothing if it is an error."""
    if error_of(versions):
        return {}
    apis = cast(_Versions, versions).api_keys or ()
    return dict(offer_of(api.api_key, api.max_version) for api in apis)


def stand_in(request: Request) -> bytes:
    """Return a request that changes nothing, to be answered in place of another one."""
    return _HEAD.pack(API_VERSIONS, 0, request.correlation_id) + NO_CLIENT_ID


def fall_back(frame: bytes) -> bytes:
    """Return the answer to an ApiVersions of a version that is not known.

    Any broker gives this answer to a version that is new to it: the oldest form, the error
    UNSUPPORTED_VERSION, and the range of ApiVersions alone.

    Args:
        frame: The broker's answer to `stand_in`, which is sent in place of such a request.
    """
    schema = schemas(API_VERSIONS, 0)[1]
    header, at = _entity(schema.__header_schema__, frame, 0)
    own = cast(_Versions, _whole(schema, frame, at))
    only = tuple(api for api in own.api_keys or () if api.api_key == API_VERSIONS)
    unsupported = replace(own, api_keys=only, error_code=ErrorCode.unsupported_version)
    return encode(header, limited(unsupported))


def rewrite(request: Request, frame: bytes, place: Place) -> bytes:
    """Return an answer as a client behind the proxy is to read it.

    Brokers have the proxy's addresses, and ApiVersions has no version that is not known here. An
    answer with none of these stays the same bytes.
    """
    if request.api_key != API_VERSIONS and not names_brokers(request.api_key, request.version):
        return frame
    header, message = decode(request, frame)
    new = (
        limited(cast(_Versions, message))
        if request.api_key == API_VERSIONS
        else readdressed(request, message, place)
    )
    return frame if new is message else encode(header, new)


def limited(versions: _Versions) -> _Versions:
    """Return ApiVersions without the APIs and versions that kio has no schema of.

    The lowest versions stay: librdkafka reads from Produce's whether a broker knows its
    compression.
    """
    kept = tuple(
        replace(api, max_version=i16(offer_of(api.api_key, api.max_version)[1].passed))
        for api in versions.api_keys or ()
        if api.api_key in api_key_map
    )
    return versions if kept == (versions.api_keys or ()) else replace(versions, api_keys=kept)


def readdressed(request: Request, message: Entity, place: Place) -> Entity:
    """Return a message with other addresses; the same message if it has none."""

    def rehomed(node: _Broker) -> _Broker:
        if node.port < 0:  # there is no broker
            return node
        host, port = place(
            getattr(node, "node_id", getattr(node, "broker_id", -1)), node.host, node.port
        )
        return replace(node, host=host, port=i32(port))

    name = ADDRESSED[request.api_key]
    if request.api_key == FIND_COORDINATOR and request.version < COORDINATORS_ARE_LISTED:
        return rehomed(cast(_Broker, message))
    nodes = getattr(message, name, ())
    return replace(message, **{name: tuple(map(rehomed, nodes))}) if nodes else message


def _known_versions() -> frozenset[int]:
    """Return the versions of ApiVersions that have a schema."""
    return frozenset(schema_name_map[api_key_map[API_VERSIONS]])


@cache
def names_brokers(api_key: int, version: int) -> bool:
    """Return whether an answer of this version has a field for addresses."""
    if api_key not in ADDRESSED:
        return False
    known = {field.name for field in fields(schemas(api_key, version)[1])}
    return bool(known & {ADDRESSED[api_key], "host"})


@cache
def schemas(api_key: int, version: int) -> tuple[type[RequestPayload], type[ResponsePayload]]:
    """Return the schemas of a request and of its answer.

    Raises:
        UnreadableError: No schema is known.
    """
    try:
        return load_request_schema(api_key, version), load_response_schema(api_key, version)
    except KioIndexError:
        api = api_key_map.get(api_key, f"API {api_key}")
        raise UnreadableError(f"{api} v{version}, of which the proxy has no schema") from None


def _read(reader: Reader[Read], what: str, frame: bytes, at: int) -> tuple[Read, int]:
    """Return what a reader finds at an offset, and the offset after it."""
    try:
        found, size = reader(frame, at)
    except (SerialError, LookupError, ValueError, OverflowError, RecursionError) as error:
        raise UnreadableError(f"{what}: {error!r}") from None
    return found, at + size


def _entity(schema: type[Kind], frame: bytes, at: int) -> tuple[Kind, int]:
    """Return a message, or a header, and the offset after it."""
    return _read(entity_reader(schema), _named(schema), frame, at)


def _named(schema: type[Entity]) -> str:
    return f"{schema.__name__} version {schema.__version__}"


def _whole(schema: type[Kind], frame: bytes, at: int) -> Kind:
    """Return the message that fills a frame from an offset to its end."""
    try:
        end_of(schema, frame, at)  # a header has no array
    except TooManyError as error:
        raise UnreadableError(f"{_named(schema)}: {error}") from None
    message, end = _entity(schema, frame, at)
    if end != len(frame):
        raise UnreadableError(f"{_named(schema)} with {len(frame) - end} bytes too many")
    return message
