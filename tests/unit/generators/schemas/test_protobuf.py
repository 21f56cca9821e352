"""Each value of a Protobuf message is written and read by its library."""

import random
import sys
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2
from schema_files import PROTO, schema_file, text_file

from upheld.errors import MachineProblem, UsageProblem
from upheld.generators.schemas import protobuf
from upheld.generators.schemas.likely import Likely
from upheld.generators.schemas.protobuf import Protobuf

KNOWN = """\
syntax = "proto3";
import "google/protobuf/any.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/wrappers.proto";
message Known {
  google.protobuf.Any any = 1;
  google.protobuf.Duration duration = 2;
  google.protobuf.Struct struct = 3;
  google.protobuf.Int64Value number = 4;
  google.protobuf.BytesValue data = 5;
  map<bool, string> flags = 6;
  optional uint64 large = 7;
  repeated float floats = 8;
  int64 created_ms = 9;
}
"""
PROTO_2 = """\
syntax = "proto2";
message Old { required string id = 1; optional int32 n = 2 [default = 3]; required Old.In in = 3;
  message In { required fixed64 f = 1; } }
"""


def descriptor_set(folder: Path, *left_out: str) -> Path:
    """Write the descriptor set of the order, without some of its files."""
    data = protobuf._compiled(schema_file(folder, "protobuf"))
    whole = descriptor_pb2.FileDescriptorSet.FromString(data)
    kept = [each for each in whole.file if each.name not in left_out]
    file = folder / "order.binpb"
    file.write_bytes(descriptor_pb2.FileDescriptorSet(file=kept).SerializeToString())
    return file


@pytest.mark.parametrize("text", [PROTO, KNOWN, PROTO_2], ids=["order", "known types", "proto2"])
def test_each_value_comes_back(tmp_path: Path, text: str) -> None:
    """One seed has one value, and its bytes are what the library reads."""
    made = Protobuf(text_file(tmp_path, "order.proto", text))
    first, second = (Likely(random.Random(1)) for _ in range(2))
    seen = set[str]()

    for _ in range(40):
        value = made.make(first)
        data = made.encode(value)
        again = made.decode(data)
        assert made.encode(again) == data
        assert made.encode(made.make(second)) == data
        seen |= again.keys()
    fields = {each.name for each in made._descriptor.fields}
    assert fields - seen <= {"any", "struct"}


def test_a_descriptor_set_says_the_same(tmp_path: Path) -> None:
    """It needs no compiler here."""
    text = Protobuf(schema_file(tmp_path, "protobuf"))
    compiled = Protobuf(descriptor_set(tmp_path))

    assert text.make(Likely(random.Random(1))) == compiled.make(Likely(random.Random(1)))


@pytest.mark.parametrize(
    ("message", "prefix"),
    [
        (None, b"\x00"),
        ("Order", b"\x00"),
        ("shop.Line", b"\x02\x02"),
        ("Line.Part", b"\x04\x02\x00"),
    ],
)
def test_the_wire_names_a_message_by_its_place(
    tmp_path: Path, message: str | None, prefix: bytes
) -> None:
    """The first one of a file has a short form."""
    assert Protobuf(schema_file(tmp_path, "protobuf"), message).prefix == prefix


def test_a_message_that_there_is_not_is_refused_with_a_guess(tmp_path: Path) -> None:
    """The messages that there are get named."""
    with pytest.raises(UsageProblem) as refused:
        Protobuf(schema_file(tmp_path, "protobuf"), "Oder")

    assert str(refused.value).endswith(
        "order.proto has no message Oder; it has shop.Order, shop.Line, shop.Line.Part. "
        "Did you mean Order?"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("syntax = 'proto3';\nmessage A {\n  strng id = 1\n}\n", "order.proto:4:1: "),
        ("syntax = 'proto3';\nimport 'other.proto';\n", "other.proto: File not found"),
        ("", "has no message"),
    ],
)
def test_an_invalid_schema_is_refused(tmp_path: Path, text: str, said: str) -> None:
    """The sentence has the line of the compiler in it."""
    with pytest.raises(UsageProblem) as refused:
        Protobuf(text_file(tmp_path, "order.proto", text))

    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_set_without_its_imports_is_refused(tmp_path: Path) -> None:
    """The sentence has the option that protoc wants."""
    file = descriptor_set(tmp_path, "google/protobuf/timestamp.proto")

    with pytest.raises(UsageProblem, match="`protoc --include_imports` writes one that is"):
        Protobuf(file)


@pytest.mark.parametrize("data", [b"", b"\xff\xff", b"hello"])
def test_a_file_that_is_no_set_is_refused(tmp_path: Path, data: bytes) -> None:
    """The sentence has the command that makes one."""
    file = tmp_path / "order.binpb"
    file.write_bytes(data)

    with pytest.raises(UsageProblem, match="protoc --include_imports --descriptor_set_out=FILE"):
        Protobuf(file)


def test_without_a_compiler_the_ways_out_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A descriptor set needs none."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "grpc_tools", None)

    with pytest.raises(MachineProblem, match=r"no protoc on PATH\. Install protoc or the Python"):
        Protobuf(schema_file(tmp_path, "protobuf"))


def test_a_message_that_holds_itself_is_refused(tmp_path: Path) -> None:
    """No value of it ends."""
    text = 'syntax = "proto2"; message A { required A a = 1; }'

    with pytest.raises(UsageProblem, match="each value of it holds another one"):
        Protobuf(text_file(tmp_path, "a.proto", text)).make(Likely(random.Random(1)))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"idd": "x"}, 'has no field named "idd"'),
        ({"cents": "x"}, "cents"),
        ({"cents": 2**63}, "out of range"),
        ([], "it is no object"),
        ({"lines": {"sku": 3}}, "lines"),
    ],
)
def test_a_value_of_another_type_is_not_written(tmp_path: Path, value: object, said: str) -> None:
    """A sample of a user may be such a value."""
    made = Protobuf(schema_file(tmp_path, "protobuf"))

    with pytest.raises(ValueError, match=said):
        made.encode(value)
    assert made.problem(value)
