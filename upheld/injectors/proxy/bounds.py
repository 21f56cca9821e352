"""Arrays of a frame that say they have more elements than the frame has bytes.

kio's reader makes room for all elements of an array before it reads the first one. It ends the
whole process if there is no such room, and a frame of 20 bytes can ask for 17 GB. So a message is
walked through here before kio reads it: sizes alone, without a value.
"""

from collections.abc import Callable
from dataclasses import Field, fields, is_dataclass
from functools import cache
from itertools import groupby
from types import NoneType, UnionType
from typing import Any, Final, NamedTuple, Union, cast, get_args, get_origin

from kio.static.protocol import Entity

MOST_ELEMENTS: Final = 1 << 20  # of all arrays of a message together
_SIZES: Final = {
    "bool": 1,
    "int8": 1,
    "uint8": 1,
    "int16": 2,
    "uint16": 2,
    "error_code": 2,
    "int32": 4,
    "uint32": 4,
    "timedelta_i32": 4,
    "float64": 8,
    "int64": 8,
    "uint64": 8,
    "timedelta_i64": 8,
    "datetime_i64": 8,
    "uuid": 16,
}
_SHORT_LENGTH: Final = ("string",)  # of two bytes where the message is not flexible, others of four
_VARINT_BYTES: Final = 5
_MORE: Final = 0x80  # another byte of a number follows


class TooManyError(ValueError):
    """A message that ends before it is over, or has too many elements."""


class Walk:
    """A way through the bytes of one message."""

    def __init__(self, frame: bytes, at: int) -> None:
        self.frame = frame
        self.at = at
        self.left = MOST_ELEMENTS

    def skip(self, size: int) -> None:
        """Go on by a number of bytes."""
        self.at += size
        if self.at > len(self.frame):
            raise TooManyError(f"{self.at - len(self.frame)} bytes are missing")

    def number(self, size: int) -> int:
        """Return a signed number of so many bytes."""
        begin = self.at
        self.skip(size)
        return int.from_bytes(self.frame[begin : self.at], signed=True)

    def varint(self) -> int:
        """Return an unsigned number of one to five bytes."""
        value = 0
        for nth in range(_VARINT_BYTES):
            begin = self.at
            self.skip(1)
            value |= (self.frame[begin] & ~_MORE) << 7 * nth
            if not self.frame[begin] & _MORE:
                return value
        raise TooManyError(f"a number has more than {_VARINT_BYTES} bytes")

    def elements(self, count: int) -> int:
        """Return a count of elements, each of which has a byte at least."""
        self.left -= max(0, count)
        if count > len(self.frame) - self.at or self.left < 0:
            raise TooManyError(f"an array has {count} elements")
        return count


Step = Callable[[Walk], None]


def end_of(schema: type[Entity], frame: bytes, at: int) -> int:
    """Return the offset after a message.

    Raises:
        TooManyError: It asks for more room than its bytes can fill.
    """
    walk = Walk(frame, at)
    for step in steps_of(schema):
        step(walk)
    return walk.at


class _Kind(NamedTuple):
    """The type of a field: what one value is, and whether there are many or none."""

    inner: Any
    is_array: bool
    is_optional: bool


@cache
def steps_of(schema: type[Entity]) -> tuple[Step, ...]:
    """Return the steps through a message; neighbours of a fixed size are one step."""
    plain = [field for field in fields(schema) if "tag" not in field.metadata]
    sized = [(_fixed_size(field), field) for field in plain]
    steps: list[Step] = []
    for is_fixed, group in groupby(sized, lambda each: each[0] > 0):
        if is_fixed:
            steps.append(_skipping(sum(size for size, _ in group)))
        else:
            steps += [_field_step(field, schema) for _, field in group]
    if schema.__flexible__:
        steps.append(_tagged(schema))
    return tuple(steps)


def _kind_of(annotation: Any) -> _Kind:
    is_optional = get_origin(annotation) in (UnionType, Union)
    if is_optional:
        (annotation,) = (each for each in get_args(annotation) if each is not NoneType)
    is_array = get_origin(annotation) is tuple
    return _Kind(get_args(annotation)[0] if is_array else annotation, is_array, is_optional)


def _fixed_size(field: "Field[Any]") -> int:
    """Return the bytes of a field whose size is always the same; 0 of any other."""
    kind = _kind_of(field.type)
    return 0 if kind.is_array else _SIZES.get(field.metadata.get("kafka_type", ""), 0)


def _field_step(field: "Field[Any]", schema: type[Entity], *, is_tag: bool = False) -> Step:
    """Return the step over one field; a tag's presence says that there is a value."""
    kind = _kind_of(field.type)
    is_flexible = schema.__flexible__
    step = _value_step(kind, field.metadata.get("kafka_type", ""), is_flexible=is_flexible)
    if kind.is_array:
        return _each(step, is_flexible=is_flexible)
    if kind.is_optional and is_dataclass(kind.inner) and not is_tag:
        return _if_there(step)
    return step


def _value_step(kind: _Kind, name: str, *, is_flexible: bool) -> Step:
    if is_dataclass(kind.inner):
        return _through(cast(type[Entity], kind.inner))
    if name in _SIZES:
        return _skipping(_SIZES[name])
    return _past_bytes(2 if name in _SHORT_LENGTH else 4, is_flexible=is_flexible)


def _skipping(size: int) -> Step:
    def step(walk: Walk) -> None:
        walk.skip(size)

    return step


def _through(inner: type[Entity]) -> Step:
    def step(walk: Walk) -> None:
        for each in steps_of(inner):
            each(walk)

    return step


def _if_there(inner: Step) -> Step:
    def step(walk: Walk) -> None:
        if walk.number(1) >= 0:
            inner(walk)

    return step


def _past_bytes(length_bytes: int, *, is_flexible: bool) -> Step:
    """Return the step over a length and as many bytes; the length of a null is below zero."""

    def step(walk: Walk) -> None:
        length = walk.varint() - 1 if is_flexible else walk.number(length_bytes)
        walk.skip(max(0, length))

    return step


def _each(inner: Step, *, is_flexible: bool) -> Step:
    def step(walk: Walk) -> None:
        count = walk.varint() - 1 if is_flexible else walk.number(4)
        for _ in range(walk.elements(count)):
            inner(walk)

    return step


def _tagged(schema: type[Entity]) -> Step:
    """Return the step over the tagged fields, which name their sizes.

    The known ones are walked through, since kio reads them too.
    """
    known = {
        field.metadata["tag"]: _field_step(field, schema, is_tag=True)
        for field in fields(schema)
        if "tag" in field.metadata
    }

    def step(walk: Walk) -> None:
        for _ in range(walk.elements(walk.varint())):
            tag = walk.varint()
            size = walk.varint()
            end = walk.at + size
            if tag in known:
                known[tag](walk)
            walk.skip(end - walk.at)

    return step
