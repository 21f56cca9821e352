"""The walk through a message before kio reads it, on everything that kio writes."""

import random
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin
from uuid import UUID

import pytest
from entities import written
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.static.primitive import TZAware, i32Timedelta, i64Timedelta
from kio.static.protocol import Entity

from upheld.injectors.proxy.bounds import MOST_ELEMENTS, TooManyError, end_of

VALUES: dict[str, Any] = {
    "bool": True,
    "error_code": ErrorCode.none,
    "timedelta_i32": i32Timedelta.parse(timedelta(seconds=1)),
    "timedelta_i64": i64Timedelta.parse(timedelta(seconds=1)),
    "datetime_i64": TZAware.truncate(datetime.fromtimestamp(1, UTC)),
    "uuid": UUID(int=7),
    "float64": 0.5,
    "string": "ab",
    "bytes": b"abc",
    "records": b"abcd",
}


def example(schema: type[Entity], drawn: random.Random) -> Entity:
    """Return a message with arrays of up to two elements, and some nulls."""
    return schema(**{each.name: value(each.type, each.metadata, drawn) for each in fields(schema)})


def value(kind: Any, metadata: Any, drawn: random.Random) -> Any:
    """Return a value of a field."""
    if get_origin(kind) in (UnionType, Union):
        if drawn.random() < 0.3 and "tag" not in metadata:
            return None
        (kind,) = (each for each in get_args(kind) if each is not NoneType)
    if get_origin(kind) is tuple:
        inner = get_args(kind)[0]
        return tuple(value(inner, metadata, drawn) for _ in range(drawn.randrange(3)))
    if is_dataclass(kind):
        return example(kind, drawn)
    return VALUES.get(metadata["kafka_type"], 3)


def messages() -> Iterator[type[Entity]]:
    """Go through every request and answer that kio knows, in all versions."""
    for key, name in api_key_map.items():
        for version in schema_name_map[name]:
            yield load_request_schema(key, version)
            yield load_response_schema(key, version)


@pytest.mark.parametrize("seed", range(3))
def test_the_walk_ends_where_the_message_does(seed: int) -> None:
    """A message that a client or a broker may send is never refused."""
    drawn = random.Random(seed)
    for schema in messages():
        frame = written(example(schema, drawn))

        assert end_of(schema, frame, 0) == len(frame), schema


def test_a_message_that_is_cut_is_refused() -> None:
    """Wherever it is cut: the bytes that are missing are named."""
    drawn = random.Random(4)
    for schema in messages():
        frame = written(example(schema, drawn))
        for end in {0, len(frame) // 2, len(frame) - 1} - {len(frame), -1}:
            with pytest.raises(TooManyError):
                end_of(schema, frame[:end], 0)


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (b"\x7f\xff\xff\xff", "an array has 2147483647 elements"),
        (b"\0\0\0\x05" + bytes(4), "an array has 5 elements"),
        (b"\0\0\0\1\x7f\xff", "32767 bytes are missing"),
    ],
)
def test_a_promise_that_the_bytes_cannot_keep(frame: bytes, why: str) -> None:
    """The sentence says what the message asked for."""
    with pytest.raises(TooManyError, match=why):
        end_of(load_request_schema(3, 1), frame, 0)


def test_elements_are_counted_together() -> None:
    """Many small arrays take as much room as a large one."""
    count = MOST_ELEMENTS + 1
    frame = count.to_bytes(4) + bytes(2) * count

    with pytest.raises(TooManyError, match="an array has 1048577 elements"):
        end_of(load_request_schema(3, 1), frame, 0)


@pytest.mark.parametrize(
    "frame",
    [
        b"\xff\xff\xff\xff\x0f",
        b"\xff" * 16,
        b"\x80" * 16,
        b"\1\1\0\xff\xff\xff\xff\x0f",  # 4 billion tagged fields
        b"\1\1\0\1\0\xff\xff\xff\xff\x0f",  # one of 4 GB
    ],
)
def test_a_flexible_message_is_bounded_too(frame: bytes) -> None:
    """Its counts and lengths are numbers of up to five bytes."""
    with pytest.raises(TooManyError):
        end_of(load_request_schema(3, 12), frame, 0)
