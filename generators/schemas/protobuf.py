"""Values that a message of Protobuf allows, and their bytes.

A schema is a `.proto` file, or a descriptor set that protoc has written. A value is what Protobuf's
JSON has for the message, with the names of the `.proto` file.
"""

import base64
import importlib.util
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, EncodeError, Message

from upheld import commands
from upheld.errors import MachineProblem, UsageProblem
from upheld.generators.schemas.likely import Likely
from upheld.generators.schemas.schema import MOST_BYTES, MOST_LEVELS, Registered, Schema
from upheld.guesses import did_you_mean
from upheld.reading import read_bytes
from upheld.text import visible

COMPILER: Final = "protoc"
COMPILER_S: Final = 30.0
MOST_DEPTH: Final = 40
MOST_ITEMS: Final = 4
SHARE_OF_OPTIONALS: Final = 0.85
_OWN: Final = "google/protobuf/"  # files that every compiler and registry has
_SHOWN_CHARS: Final = 300
_WRAPPED: Final = {
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
}
_LEFT_OUT: Final = frozenset(
    f"google.protobuf.{kind}" for kind in ("Any", "FieldMask", "Struct", "Value", "ListValue")
)


class Protobuf(Schema):
    """A message of a Protobuf schema.

    Attributes:
        message_class: The class of its values in the library of Protobuf.
    """

    def __init__(self, file: Path, message: str | None = None) -> None:
        self._file = file
        is_text = file.suffix == ".proto"
        data = _compiled(file) if is_text else read_bytes(file, most=MOST_BYTES)
        try:
            self._set = descriptor_pb2.FileDescriptorSet.FromString(data)
        except DecodeError:
            self._set = descriptor_pb2.FileDescriptorSet()
        if not self._set.file:
            raise UsageProblem(
                f"{file} is no schema of Protobuf: neither a .proto file nor a descriptor set, as "
                "`protoc --include_imports --descriptor_set_out=FILE` writes it."
            )
        self._pool = self._pooled()
        self._descriptor = self._found(message)
        self.message_class = message_factory.GetMessageClass(self._descriptor)
        self.prefix = b"".join(map(_zigzag, _indexes(self._descriptor)))

    def _pooled(self) -> descriptor_pool.DescriptorPool:
        pool = descriptor_pool.DescriptorPool()
        try:
            for each in self._set.file:
                pool.Add(each)
            for each in self._set.file:
                pool.FindFileByName(each.name)
        except (KeyError, TypeError, ValueError) as error:
            said = visible(str(error).strip("'\"").split("\n", 1)[0], _SHOWN_CHARS).rstrip(". ")
            raise UsageProblem(
                f"{self._file} is no whole schema of Protobuf ({said}); "
                "`protoc --include_imports` writes one that is."
            ) from None
        return pool

    def _found(self, message: str | None) -> Descriptor:
        """Return the message of this name; without a name the first of the last file."""
        last = self._set.file[-1]
        names = [name for each in self._set.file for name in _names(each)]
        if message is None:
            first = next(_names(last), None)
            if first is None:
                raise UsageProblem(f"{self._file} has no message.")
            message = first
        elif message not in names:
            inside = f"{last.package}.{message}"
            if inside not in names:
                own = [name for name in names if not name.startswith("google.protobuf.")]
                short = [name.rpartition(".")[2] for name in own]
                raise UsageProblem(
                    f"{self._file} has no message {visible(message, _SHOWN_CHARS)}; it has "
                    f"{', '.join(own)}.{did_you_mean(message, (*own, *short))}"
                )
            message = inside
        return self._pool.FindMessageTypeByName(message)

    def make(self, likely: Likely) -> Any:
        """Return a value of the message."""
        try:
            return _made(self._descriptor, likely, 0)
        except RecursionError:
            raise UsageProblem(f"{self._file}: each value of it holds another one.") from None

    def problem(self, value: Any) -> str:
        """Return why the message does not allow a value; empty if it does."""
        try:
            self.encode(value)
        except ValueError as error:
            return str(error)
        return ""

    def encode(self, value: Any) -> bytes:
        """Return a value in Protobuf's binary form; one value has the same bytes always."""
        if not isinstance(value, dict):
            raise ValueError("it is no object")  # noqa: TRY004
        try:
            parsed: Message = json_format.ParseDict(value, self.message_class())
            return parsed.SerializeToString(deterministic=True)
        except (json_format.ParseError, EncodeError, AttributeError, TypeError) as error:
            said = str(error).split("\n", 1)[0].rstrip(".")
            raise ValueError(visible(said, _SHOWN_CHARS)) from None

    def decode(self, data: bytes) -> Any:
        """Return a value that `encode` has written."""
        return json_format.MessageToDict(
            self.message_class.FromString(data), preserving_proto_field_name=True
        )

    @cached_property
    def registered(self) -> Registered:
        """The schema as a registry takes it: the compiled file in base64.

        So a registry gives it to every client, also if it has no compiler.
        """
        files = {each.name: each for each in self._set.file}
        return _registered(files[self._descriptor.file.name], files)


def _registered(
    file: descriptor_pb2.FileDescriptorProto,
    files: dict[str, descriptor_pb2.FileDescriptorProto],
) -> Registered:
    own = [name for name in file.dependency if not name.startswith(_OWN)]
    return Registered(
        kind="PROTOBUF",
        text=base64.b64encode(file.SerializeToString(deterministic=True)).decode(),
        imports=tuple((name, _registered(files[name], files)) for name in own),
    )


def _compiled(file: Path) -> bytes:
    """Return the descriptor set of a .proto file."""
    own = commands.program(COMPILER)
    if own is not None:
        command = [own]
    elif importlib.util.find_spec("grpc_tools") is not None:
        command = [commands.PYTHON, "-P", "-m", "grpc_tools.protoc"]
    else:
        raise MachineProblem(
            f"{file} cannot be compiled: there is no protoc on PATH. Install protoc or the Python "
            "package grpcio-tools, or name a descriptor set instead."
        )
    folder = file.absolute().parent
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "set.binpb"
        arguments = [f"--proto_path={folder}", "--include_imports", f"--descriptor_set_out={out}"]
        try:
            ended = subprocess.run(
                [*command, *arguments, str(folder / file.name)],
                capture_output=True,
                text=True,
                errors="backslashreplace",
                timeout=COMPILER_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise MachineProblem(f"{file}: protoc took more than {COMPILER_S:.0f} s.") from None
        if ended.returncode != 0:
            lines = [line for line in ended.stderr.splitlines() if line.strip()]
            said = visible(lines[0] if lines else "protoc says nothing", _SHOWN_CHARS)
            raise UsageProblem(f"{file} is no valid schema of Protobuf: {said.rstrip('.')}.")
        return out.read_bytes()


def _names(file: descriptor_pb2.FileDescriptorProto) -> Iterator[str]:
    """Go through the full names of the messages of a file, outer ones first."""
    waiting = [(file.package, each) for each in file.message_type]
    for space, message in waiting:
        name = f"{space}.{message.name}" if space else message.name
        if not message.options.map_entry:
            yield name
        waiting += [(name, inner) for inner in message.nested_type]


def _indexes(descriptor: Descriptor) -> list[int]:
    """Return the numbers by which the wire names a message: their count, and each of them.

    The first message of a file has a short form, the single number 0.
    """
    path = list[int]()
    inner: Descriptor | None = descriptor
    while inner is not None:
        outer = inner.containing_type
        siblings = outer.nested_types if outer else inner.file.message_types_by_name.values()
        path.insert(0, [each.full_name for each in siblings].index(inner.full_name))
        inner = outer
    return [0] if path == [0] else [len(path), *path]


def _zigzag(number: int) -> bytes:
    """Return a number that is not negative as a varint with a sign."""
    rest = number << 1
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _made(descriptor: Descriptor, likely: Likely, depth: int) -> dict[str, Any]:
    """Return a value of a message."""
    if depth > MOST_DEPTH:
        raise RecursionError
    chosen = {
        each.name: likely.rng.choice(each.fields).name for each in descriptor.oneofs if each.fields
    }
    made = dict[str, Any]()
    for each in descriptor.fields:
        oneof = each.containing_oneof
        if (oneof is None or chosen[oneof.name] == each.name) and _is_there(each, likely, depth):
            made[each.name] = _field(each, likely, depth)
    return made


def _is_there(each: FieldDescriptor, likely: Likely, depth: int) -> bool:
    if each.is_required:
        return True
    message = each.message_type
    if message is None:
        return each.containing_oneof is not None or likely.chance(SHARE_OF_OPTIONALS)
    if message.full_name in _LEFT_OUT:
        return False
    return depth < MOST_LEVELS and likely.chance(SHARE_OF_OPTIONALS)


def _field(each: FieldDescriptor, likely: Likely, depth: int) -> Any:
    """Return a value of a field, which may be a list or a map."""
    message = each.message_type
    if not each.is_repeated:
        return _single(each, likely, depth)
    count = likely.rng.randrange(MOST_ITEMS)
    if message is not None and message.GetOptions().map_entry:
        key, value = message.fields
        keys = {json_key(_single(key, likely, depth)) for _ in range(count)}
        return {name: _single(value, likely, depth) for name in sorted(keys)}
    return [_single(each, likely, depth) for _ in range(count)]


def json_key(value: Any) -> str:
    """Return a key of a map as Protobuf's JSON has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _single(each: FieldDescriptor, likely: Likely, depth: int) -> Any:
    """Return one value of a field."""
    if each.message_type is not None:
        return _inner(each.message_type, likely, depth)
    if each.enum_type is not None:
        return likely.rng.choice(each.enum_type.values).name
    if each.type == FieldDescriptor.TYPE_BYTES:
        return base64.b64encode(likely.rng.randbytes(likely.rng.randint(1, 8))).decode()
    made: Any
    match each.cpp_type:
        case FieldDescriptor.CPPTYPE_BOOL:
            made = likely.chance(0.5)
        case FieldDescriptor.CPPTYPE_STRING:
            made = likely.text(each.name)
        case FieldDescriptor.CPPTYPE_FLOAT | FieldDescriptor.CPPTYPE_DOUBLE:
            made = likely.rng.randrange(400_000) / 4  # which both kinds hold exactly
        case FieldDescriptor.CPPTYPE_INT64 | FieldDescriptor.CPPTYPE_UINT64:
            made = str(_whole(each.name, likely))  # as Protobuf's JSON has it
        case _:
            made = likely.number(None, None)
    return made


def _inner(message: Descriptor, likely: Likely, depth: int) -> Any:
    """Return a value of a message inside another one, as Protobuf's JSON has it."""
    match message.full_name:
        case "google.protobuf.Timestamp":
            return likely.date_time()
        case "google.protobuf.Duration":
            return f"{likely.rng.randrange(86_400)}s"
        case name if name in _WRAPPED:
            return _single(message.fields_by_name["value"], likely, depth)
    return _made(message, likely, depth + 1)


def _whole(name: str, likely: Likely) -> int:
    """Return a whole number; a moment where the name says so."""
    is_moment = name.endswith(("_ms", "_millis", "timestamp"))
    return likely.moment_ms() if is_moment else likely.number(None, None)
