"""Kafka's frames as they travel: what their headers say, and whole messages where one names
addresses, by kio's schemas.

Traps, from the protocol guide and its clients: the client id of a flexible header is not compact;
the answer to ApiVersions always has the oldest header, and the oldest body where the version was
not known; a Produce that wants no acknowledgement has no answer.
"""

import io
import struct
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from typing import Any

from kio.index import KioIndexError, load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError
from kio.serial.readers import Reader, read_compact_string_nullable, read_nullable_legacy_string
from kio.static.primitive import i16, i32

PRODUCE, FETCH, METADATA, FIND_COORDINATOR, API_VERSIONS, DESCRIBE_CLUSTER = 0, 1, 3, 10, 18, 60
UNSUPPORTED_VERSION = 35
# API key -> the field of an answer that names brokers
ADDRESSED = {
    PRODUCE: "node_endpoints",
    FETCH: "node_endpoints",
    METADATA: "brokers",
    FIND_COORDINATOR: "coordinators",
    DESCRIBE_CLUSTER: "brokers",
}
_HEAD = struct.Struct(">hhi")  # API key, version, correlation id

# A broker's id, host and port -> the host and port that a client is told.
Place = Callable[[int, str, int], tuple[str, int]]


class UnreadableError(Exception):
    """What travels is no frame that these schemas know."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request's header; `frame` is all of it, without the length that travels before."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    frame: bytes
    body: int  # where it begins

    @property
    def api(self) -> str:
        """The API's name in snake case, such as `end_txn`."""
        return api_key_map[self.api_key]

    @property
    def is_answered(self) -> bool:
        """Whether the broker answers it: all but a Produce with acks=0."""
        return self.api_key != PRODUCE or self.acks != 0

    @property
    def acks(self) -> int:
        """Whose acknowledgement a Produce waits for: nobody's, the leader's (1) or every replica's
        (-1).
        """
        reader = read_compact_string_nullable if self.version >= 9 else read_nullable_legacy_string
        # Which stands before the acks.
        _, at = _read(reader, "a transactional id", self.frame, self.body)
        return int.from_bytes(self.frame[at : at + 2], signed=True)

    def decoded(self) -> Any:
        """The request's message."""
        return _whole(schemas(self.api_key, self.version)[0], self.frame, self.body)


def parse(frame: bytes) -> Request:
    """What a request's header says; UnreadableError if it is none."""
    if len(frame) < _HEAD.size:
        raise UnreadableError(f"a request of {len(frame)} bytes")
    api_key, version, correlation_id = _HEAD.unpack_from(frame)
    header, body = _entity(schemas(api_key, version)[0].__header_schema__, frame, 0)
    return Request(api_key, version, correlation_id, header.client_id, frame, body)


def correlation_id_of(frame: bytes) -> int:
    """Of an answer."""
    if len(frame) < 4:
        raise UnreadableError(f"an answer of {len(frame)} bytes")
    return int.from_bytes(frame[:4], signed=True)


def decode(request: Request, frame: bytes) -> tuple[Any, Any]:
    """Header and message of the answer to a request."""
    schema = schemas(request.api_key, request.version)[1]
    if (
        request.api_key == API_VERSIONS
        and int.from_bytes(frame[4:6], signed=True) == UNSUPPORTED_VERSION
    ):
        schema = schemas(API_VERSIONS, 0)[1]
    header, at = _entity(schema.__header_schema__, frame, 0)
    return header, _whole(schema, frame, at)


def error_of(message: Any) -> int:
    """The first error code in an answer, wherever it stands; 0 where all is well."""
    values = [getattr(message, field.name) for field in fields(message)]
    found = [int(value) for value in values if isinstance(value, ErrorCode)]
    found += [
        error_of(part)
        for value in values
        if isinstance(value, tuple)
        for part in value
        if is_dataclass(part)
    ]
    return next((code for code in found if code), 0)


def encode(header: Any, message: Any) -> bytes:
    """The frame of an answer."""
    buffer = io.BytesIO()
    entity_writer(type(header))(buffer, header)
    entity_writer(type(message))(buffer, message)
    return buffer.getvalue()


def parts(message: Any) -> tuple[Any, ...]:
    """The first list in it: the topics of a message, the partitions of a topic."""
    return next(
        (
            value
            for field in fields(message)
            if isinstance(value := getattr(message, field.name), tuple)
        ),
        (),
    )


def places(request: Request) -> set[tuple[Any, int]]:
    """The topics, by name or id, and partitions that a request is for, where it lists them."""
    return {
        (
            getattr(topic, "name", None) or topic.topic_id,
            getattr(part, "index", getattr(part, "partition_index", part)),
        )
        for topic in parts(request.decoded())
        for part in parts(topic)
    }


def names(metadata: Any) -> dict[Any, str]:
    """The topics that an answer to Metadata names, by their ids."""
    return {
        topic.topic_id: topic.name for topic in metadata.topics if getattr(topic, "topic_id", None)
    }


def stand_in(request: Request) -> bytes:
    """A request that changes nothing, and is answered in the place of another."""
    return _HEAD.pack(API_VERSIONS, 0, request.correlation_id) + b"\xff\xff"  # from nobody


def told(request: Request, frame: bytes, place: Place) -> bytes:
    """An answer as a client behind the proxy is to read it: with its addresses, and no version that
    is not known here.

    The same bytes where nothing of that is in it.
    """
    if request.api_key != API_VERSIONS and request.api_key not in ADDRESSED:
        return frame
    header, message = decode(request, frame)
    new = (
        limited(message)
        if request.api_key == API_VERSIONS
        else readdressed(request, message, place)
    )
    return frame if new is message else encode(header, new)


def limited(versions: Any) -> Any:
    """ApiVersions without the APIs and the versions that kio has no schema of. The lowest stay:
    librdkafka reads from Produce's whether a broker knows its compression."""
    known = {key: max(schema_name_map[name]) for key, name in api_key_map.items()}
    kept = tuple(
        replace(api, max_version=i16(min(api.max_version, known[api.api_key])))
        for api in versions.api_keys
        if api.api_key in known
    )
    return versions if kept == versions.api_keys else replace(versions, api_keys=kept)


def readdressed(request: Request, message: Any, place: Place) -> Any:
    """The message with other addresses; itself where it has none."""

    def moved(node: Any) -> Any:
        if node.port < 0:  # nobody
            return node
        host, port = place(
            getattr(node, "node_id", getattr(node, "broker_id", -1)), node.host, node.port
        )
        return replace(node, host=host, port=i32(port))

    name = ADDRESSED[request.api_key]
    if request.api_key == FIND_COORDINATOR and request.version < 4:
        return moved(message)
    nodes = getattr(message, name, ())
    return replace(message, **{name: tuple(map(moved, nodes))}) if nodes else message


@cache
def schemas(api_key: int, version: int) -> tuple[Any, Any]:
    """Of a request and its answer; UnreadableError where none is known."""
    try:
        return load_request_schema(api_key, version), load_response_schema(api_key, version)
    except KioIndexError:
        raise UnreadableError(
            f"API {api_key} version {version}, of which no schema is known"
        ) from None


def _read(reader: Reader[Any], what: str, frame: bytes, at: int) -> tuple[Any, int]:
    """What begins there, and where it ends."""
    try:
        found, size = reader(frame, at)
    except (SerialError, LookupError, ValueError, OverflowError) as error:
        raise UnreadableError(f"{what}: {error!r}") from None
    return found, at + size


def _entity(schema: Any, frame: bytes, at: int) -> tuple[Any, int]:
    return _read(
        entity_reader(schema), f"{schema.__name__} version {schema.__version__}", frame, at
    )


def _whole(schema: Any, frame: bytes, at: int) -> Any:
    message, end = _entity(schema, frame, at)
    if end != len(frame):
        raise UnreadableError(
            f"{schema.__name__} version {schema.__version__} with {len(frame) - end} bytes too many"
        )
    return message
