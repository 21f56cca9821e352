"""Values that an Avro schema allows, and their bytes.

A text stands for bytes, with a character for each byte, as in Avro's own JSON. A logical type is
what its base type is: a timestamp is a number.
"""

import io
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from upheld.errors import UsageProblem
from upheld.generators.schemas.likely import Likely
from upheld.generators.schemas.schema import (
    MOST_BYTES,
    MOST_LEVELS,
    Registered,
    Schema,
    demand_extra,
)
from upheld.reading import loaded, read_text
from upheld.text import visible

SHARE_OF_NULLS: Final = 0.2
MOST_DEPTH: Final = 60
MOST_ITEMS: Final = 4
MOST_DIGITS: Final = 9  # of a decimal that is made
_SHOWN_CHARS: Final = 100
_VALUE: Final = "{value}"  # where a value stands in a sentence on it
_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_PLAIN: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_DAY_MS: Final = 24 * 3_600_000
_BITS: Final = {"int": 31, "long": 63}


@dataclass
class Type:
    """A type of an Avro schema, with everything below it.

    Attributes:
        kind: A primitive type, or record, enum, fixed, array, map or union.
        logical: Its logical type; empty if it has none.
        fields: The fields of a record.
        inner: The branches of a union; the items of an array or the values of a map alone.
        symbols: The symbols of an enum.
        size: The bytes of a fixed.
        digits: The digits of a decimal.
    """

    kind: str
    logical: str = ""
    name: str = ""
    fields: list[tuple[str, "Type"]] = field(default_factory=list)
    inner: list["Type"] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    size: int = 0
    digits: int = 0


class _Wrong(Exception):
    """A part of a schema or a value that is wrong: its place, and why.

    Of a value it is written only when it is read: a union tries one branch after the other.
    """

    def __init__(self, said: str, value: object = None) -> None:
        super().__init__(said, value)

    def __str__(self) -> str:
        said, value = self.args
        return str(said).replace(_VALUE, _short(value))


class Avro(Schema):
    """An Avro schema."""

    def __init__(self, file: Path) -> None:
        demand_extra("An Avro schema")
        import fastavro
        import fastavro.schema

        self._file = file
        self._text = read_text(file, most=MOST_BYTES)
        try:
            root = loaded(self._text)
        except ValueError as error:
            said = str(error).split("\n", 1)[0].rstrip(".")
            raise UsageProblem(f"{file} is no JSON: {said}.") from None
        try:
            self._type = _Reader().type(root, "$", "")
            self._parsed: Any = fastavro.parse_schema(_plain(root))
        except (_Wrong, fastavro.schema.SchemaParseException) as error:
            raise UsageProblem(f"{file} is no valid Avro schema: {error}.") from None
        except fastavro.schema.UnknownType as error:
            raise UsageProblem(
                f"{file} is no valid Avro schema: it has no type {error.name}."
            ) from None

    def make(self, likely: Likely) -> Any:
        """Return a value that the schema allows."""
        try:
            return _made(self._type, "", likely, 0)
        except RecursionError:
            raise UsageProblem(f"{self._file}: each value of it holds another one.") from None

    def problem(self, value: Any) -> str:
        """Return why the schema does not allow a value; empty if it does."""
        try:
            _native(self._type, value, "$")
        except _Wrong as wrong:
            return str(wrong)
        return ""

    def encode(self, value: Any) -> bytes:
        """Return a value in Avro's binary form, without its schema."""
        import fastavro

        try:
            native = _native(self._type, value, "$")
        except _Wrong as wrong:
            raise ValueError(str(wrong)) from None
        out = io.BytesIO()
        fastavro.schemaless_writer(out, self._parsed, native)
        return out.getvalue()

    def decode(self, data: bytes) -> Any:
        """Return a value that `encode` has written."""
        import fastavro

        return _told(fastavro.schemaless_reader(io.BytesIO(data), self._parsed, None))

    @property
    def registered(self) -> Registered:
        """The schema as a registry takes it."""
        return Registered("AVRO", self._text)


class _Reader:
    """Reads the types of a schema; knows those that have a name."""

    def __init__(self) -> None:
        self._named: dict[str, Type] = {}

    def type(self, node: Any, place: str, space: str) -> Type:
        """Read a type.

        Args:
            node: The type, as JSON has it.
            place: The path that leads to it.
            space: The namespace around it.
        """
        match node:
            case str():
                return self._called(node, place, space)
            case list():
                return self._union(node, place, space)
            case {"type": str(kind)} if kind in _COMPLEX:
                return _COMPLEX[kind](self, node, place, space)
            case {"type": str() | dict() | list() as inner}:
                found = self.type(inner, f"{place}.type", space)
                logical = node.get("logicalType", "")
                if found.kind in _PLAIN and isinstance(logical, str):
                    return Type(found.kind, logical, digits=_digits(node))
                return found
        raise _Wrong(f"at {place}: {_short(node)} is no type")

    def _called(self, name: str, place: str, space: str) -> Type:
        if name in _PLAIN:
            return Type(name)
        for known in (f"{space}.{name}", name):
            if known in self._named:
                return self._named[known]
        raise _Wrong(f"at {place}: there is no type {_short(name)}")

    def _union(self, node: list[Any], place: str, space: str) -> Type:
        branches = [self.type(each, f"{place}[{n}]", space) for n, each in enumerate(node)]
        if not branches:
            raise _Wrong(f"at {place}: a union has a branch at least")
        if any(branch.kind == "union" for branch in branches):
            raise _Wrong(f"at {place}: a union has no union as a branch")
        return Type("union", inner=branches)

    def _begun(self, node: Mapping[str, Any], place: str, space: str) -> tuple[Type, str]:
        """Begin a type with a name, which may stand in itself; return its namespace too."""
        name = node.get("name")
        if not isinstance(name, str) or not all(map(_NAME.fullmatch, name.split("."))):
            raise _Wrong(f"at {place}: its `name` is {_short(name)}, and has to be a name")
        own, _, _ = name.rpartition(".")
        inside = own or str(node.get("namespace", space))
        whole = name if own or not inside else f"{inside}.{name}"
        if whole in self._named:
            raise _Wrong(f"at {place}: the type {whole} is there twice")
        logical = node.get("logicalType", "")
        found = Type(str(node["type"]), logical if isinstance(logical, str) else "", whole)
        self._named[whole] = found
        return found, inside

    def _record(self, node: Mapping[str, Any], place: str, space: str) -> Type:
        found, inside = self._begun(node, place, space)
        found.kind = "record"
        fields = node.get("fields")
        if not isinstance(fields, list):
            raise _Wrong(f"at {place}: its `fields` are {_short(fields)}, and have to be a list")
        for number, each in enumerate(fields):
            at = f"{place}.fields[{number}]"
            if not isinstance(each, dict) or not isinstance(each.get("name"), str):
                raise _Wrong(f"at {at}: a field is an object with a name and a type")
            if "type" not in each:
                raise _Wrong(f"at {at}: the field {_short(each['name'])} has no type")
            found.fields.append((each["name"], self.type(each["type"], f"{at}.type", inside)))
        return found

    def _enum(self, node: Mapping[str, Any], place: str, space: str) -> Type:
        found, _ = self._begun(node, place, space)
        symbols = node.get("symbols")
        if (
            not isinstance(symbols, list)
            or not symbols
            or not all(isinstance(each, str) for each in symbols)
        ):
            raise _Wrong(f"at {place}: its `symbols` are {_short(symbols)}, and have to be texts")
        found.symbols = symbols
        return found

    def _fixed(self, node: Mapping[str, Any], place: str, space: str) -> Type:
        found, _ = self._begun(node, place, space)
        size = node.get("size")
        if not isinstance(size, int) or not 0 <= size <= MOST_BYTES:
            raise _Wrong(f"at {place}: its `size` is {_short(size)}, and has to be a whole number")
        found.size = size
        found.digits = _digits(node)
        return found

    def _inside(self, node: Mapping[str, Any], place: str, space: str) -> Type:
        keyword = "items" if node["type"] == "array" else "values"
        if keyword not in node:
            raise _Wrong(f"at {place}: it has no `{keyword}`")
        inner = self.type(node[keyword], f"{place}.{keyword}", space)
        return Type(str(node["type"]), inner=[inner])


_Read = Callable[[_Reader, Mapping[str, Any], str, str], Type]
_COMPLEX: Final[Mapping[str, _Read]] = {
    "record": _Reader._record,
    "error": _Reader._record,
    "enum": _Reader._enum,
    "fixed": _Reader._fixed,
    "array": _Reader._inside,
    "map": _Reader._inside,
}


def _digits(node: Mapping[str, Any]) -> int:
    """Return the digits of a decimal; 0 if there is no such number."""
    digits = node.get("precision", 0)
    return digits if isinstance(digits, int) and digits > 0 else 0


def _plain(node: Any) -> Any:
    """Return a schema without logical types: they change no byte, and only Python's types."""
    match node:
        case dict():
            named = {name: inner for name, inner in node.items() if name != "logicalType"}
            return {
                name: inner if name in {"default", "aliases", "doc"} else _plain(inner)
                for name, inner in named.items()
            }
        case list():
            return [_plain(inner) for inner in node]
    return node


def _made(kind: Type, name: str, likely: Likely, depth: int) -> Any:
    """Return a value of a type, for a field of this name."""
    if depth > MOST_DEPTH:
        raise RecursionError
    made: Any
    match kind.kind:
        case "record":
            made = {each: _made(inner, each, likely, depth + 1) for each, inner in kind.fields}
        case "union":
            made = _made(_branch(kind, likely, depth), name, likely, depth + 1)
        case "array":
            made = _items(kind, name, likely, depth)
        case "map":
            items = _items(kind, name, likely, depth)
            made = {f"{likely.fake.word()}-{n}": item for n, item in enumerate(items)}
        case "enum":
            made = likely.rng.choice(kind.symbols)
        case "fixed":
            made = _decimal(kind, likely) or likely.rng.randbytes(kind.size).decode("latin-1")
        case _:
            made = _primitive(kind, name, likely)
    return made


def _items(kind: Type, name: str, likely: Likely, depth: int) -> list[Any]:
    count = 0 if depth > MOST_LEVELS else likely.rng.randrange(MOST_ITEMS)
    return [_made(kind.inner[0], name, likely, depth + 1) for _ in range(count)]


def _branch(kind: Type, likely: Likely, depth: int) -> Type:
    """Choose a branch of a union; deep inside, null if it may be."""
    nulls = [branch for branch in kind.inner if branch.kind == "null"]
    others = [branch for branch in kind.inner if branch.kind != "null"]
    if nulls and (not others or depth > MOST_LEVELS or likely.chance(SHARE_OF_NULLS)):
        return nulls[0]
    return likely.rng.choice(others)


def _primitive(kind: Type, name: str, likely: Likely) -> Any:
    """Return a value of a primitive type, which may have a logical one."""
    by_logic = _LOGICAL.get((kind.kind, kind.logical))
    if by_logic is not None:
        return by_logic(likely)
    return _decimal(kind, likely) or _PRIMITIVE[kind.kind](likely, name)


def _decimal(kind: Type, likely: Likely) -> str:
    """Return the bytes of a decimal, which a fixed fills up; empty for any other type."""
    if kind.logical != "decimal" or not kind.digits:
        return ""
    number = likely.rng.randrange(10 ** min(kind.digits, MOST_DIGITS))
    if kind.kind == "fixed":
        number = min(number, (1 << (8 * kind.size - 1)) - 1) if kind.size else 0
    size = kind.size if kind.kind == "fixed" else number.bit_length() // 8 + 1
    return number.to_bytes(size, "big").decode("latin-1")


_LOGICAL: Final[Mapping[tuple[str, str], Callable[[Likely], Any]]] = {
    ("int", "date"): lambda likely: likely.moment_ms() // _DAY_MS,
    ("int", "time-millis"): lambda likely: likely.rng.randrange(_DAY_MS),
    ("long", "time-micros"): lambda likely: likely.rng.randrange(_DAY_MS) * 1_000,
    ("long", "timestamp-millis"): Likely.moment_ms,
    ("long", "local-timestamp-millis"): Likely.moment_ms,
    ("long", "timestamp-micros"): lambda likely: likely.moment_ms() * 1_000,
    ("long", "local-timestamp-micros"): lambda likely: likely.moment_ms() * 1_000,
    ("string", "uuid"): Likely.uuid,
}


def _octets(likely: Likely, _: str) -> str:
    return likely.rng.randbytes(likely.rng.randint(1, 8)).decode("latin-1")


def _whole(likely: Likely, _: str) -> int:
    return likely.number(None, None)


def _quarters(likely: Likely, _: str) -> float:
    return likely.rng.randrange(400_000) / 4  # which float and double hold exactly


_PRIMITIVE: Final[Mapping[str, Callable[[Likely, str], Any]]] = {
    "null": lambda _likely, _name: None,
    "boolean": lambda likely, _: likely.chance(0.5),
    "int": _whole,
    "long": _whole,
    "float": _quarters,
    "double": _quarters,
    "bytes": _octets,
    "string": Likely.text,
}


def _native(kind: Type, value: Any, place: str) -> Any:
    """Return a value as the library takes it: bytes as bytes, and branches of unions by name.

    Raises:
        _Wrong: It is no value of the type.
    """
    match kind.kind, value:
        case "union", _:
            return _of_branch(kind, value, place)
        case "record", dict():
            return _of_record(kind, value, place)
        case "array", list():
            return [_native(kind.inner[0], each, f"{place}[{n}]") for n, each in enumerate(value)]
        case "map", dict():
            return {
                name: _native(kind.inner[0], each, f"{place}.{name}")
                for name, each in value.items()
            }
        case "enum", str() if value in kind.symbols:
            return value
    return _of_primitive(kind, value, place)


def _of_record(kind: Type, value: Mapping[str, Any], place: str) -> dict[str, Any]:
    known = dict(kind.fields)
    for name in value:
        if name not in known:
            raise _Wrong(f"at {place}: {kind.name} has no field {_short(name)}")
    for name in known:
        if name not in value:
            raise _Wrong(f"at {place}: the field {name} is missing")
    return {name: _native(inner, value[name], f"{place}.{name}") for name, inner in kind.fields}


def _of_branch(kind: Type, value: Any, place: str) -> Any:
    """Return a value with the first branch of a union that allows it."""
    for branch in kind.inner:
        try:
            native = _native(branch, value, place)
        except _Wrong:
            continue
        return (
            native
            if branch.kind in {"null", "array", "map"}
            else (branch.name or branch.kind, native)
        )
    raise _Wrong(f"at {place}: {_VALUE} is of no branch of its union", value)


def _of_primitive(kind: Type, value: Any, place: str) -> Any:
    number = isinstance(value, int) and not isinstance(value, bool)
    match kind.kind, value:
        case "null", None:
            return value
        case "boolean", bool():
            return value
        case "int" | "long", int() if number and -1 <= value >> _BITS[kind.kind] <= 0:
            return value
        case "float" | "double", int() | float() if not isinstance(value, bool):
            if math.isfinite(value):
                return float(value)
        case "string", str():
            return value
        case "bytes" | "fixed", str():
            try:
                data = value.encode("latin-1")
            except UnicodeEncodeError:
                data = None
            if data is not None and (kind.kind == "bytes" or len(data) == kind.size):
                return data
    raise _Wrong(f"at {place}: {_VALUE} is no value of the type {kind.name or kind.kind}", value)


def _told(value: Any) -> Any:
    """Return a value of the library as JSON has it."""
    match value:
        case bytes():
            return value.decode("latin-1")
        case dict():
            return {name: _told(inner) for name, inner in value.items()}
        case list():
            return [_told(inner) for inner in value]
    return value


def _short(value: object) -> str:
    text = repr(value)
    return visible(text, _SHOWN_CHARS)
