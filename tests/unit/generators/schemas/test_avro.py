"""Each value that is made of an Avro schema is written and read by its library."""

import io
import json
import random
from pathlib import Path
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from schema_files import AVRO, text_file

from upheld.errors import UsageProblem
from upheld.generators.schemas.avro import Avro
from upheld.generators.schemas.likely import Likely

NAMES = st.sampled_from([f"f{n}" for n in range(6)])
TYPES = st.recursive(
    st.sampled_from(["null", "boolean", "int", "long", "float", "double", "bytes", "string"]),
    lambda inner: st.one_of(
        inner.map(lambda kind: {"type": "array", "items": kind}),
        inner.map(lambda kind: {"type": "map", "values": kind}),
        st.just(["null", "string"]),
        st.just(["int", "bytes", "null", "double"]),
    ),
    max_leaves=4,
)
RECORDS = st.lists(TYPES, min_size=1, max_size=5).map(
    lambda kinds: {
        "type": "record",
        "name": "R",
        "fields": [{"name": f"f{n}", "type": kind} for n, kind in enumerate(kinds)],
    }
)


def schema_of(folder: Path, schema: Any) -> Avro:
    """Return a schema that stands in a file."""
    return Avro(text_file(folder, "schema.avsc", json.dumps(schema)))


def read(schema: Any, data: bytes) -> Any:
    """Read a value as a consumer does."""
    return fastavro.schemaless_reader(io.BytesIO(data), fastavro.parse_schema(schema), None)


@settings(max_examples=60)
@given(schema=RECORDS, seed=st.integers(0, 99))
def test_each_value_of_any_schema_comes_back(
    tmp_path_factory: pytest.TempPathFactory, schema: Any, seed: int
) -> None:
    """One seed has one value, and its bytes are what the library reads."""
    made = schema_of(tmp_path_factory.getbasetemp(), schema)
    value = made.make(Likely(random.Random(seed)))
    data = made.encode(value)

    assert made.problem(value) == ""
    assert made.decode(data) == value
    assert set(read(schema, data)) == set(value)
    assert data == made.encode(made.make(Likely(random.Random(seed))))


def test_logical_types_are_what_they_say(tmp_path: Path) -> None:
    """A consumer gets moments, decimals and UUIDs of a likely size."""
    made = schema_of(tmp_path, AVRO)
    likely = Likely(random.Random(1))

    for _ in range(30):
        found = read(AVRO, made.encode(made.make(likely)))
        assert 2023 <= found["at"].year <= 2026
        assert 0 <= found["price"] < 10_000_000
        assert found["id"].version == 4
        assert found["state"] in {"NEW", "PAID"}
        assert len(found["digest"]) == 4


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "strng"}, "at $.type: there is no type 'strng'"),
        ({"type": "record", "name": "R"}, "at $: its `fields` are None, and have to be a list"),
        ({"type": "record", "fields": []}, "at $: its `name` is None, and has to be a name"),
        (
            {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}, {}]},
            "at $.fields[1]: a field is an object with a name and a type",
        ),
        (
            {"type": "record", "name": "R", "fields": [{"name": "a"}]},
            "at $.fields[0]: the field 'a' has no type",
        ),
        (
            {"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "X"]}]},
            "at $.fields[0].type[1]: there is no type 'X'",
        ),
        ({"type": "enum", "name": "E", "symbols": []}, "at $: its `symbols` are []"),
        ({"type": "enum", "name": "E", "symbols": ["a b"]}, "is no valid Avro schema: "),
        ({"type": "fixed", "name": "F", "size": -1}, "at $: its `size` is -1"),
        ({"type": "array"}, "at $: it has no `items`"),
        ({"type": "map"}, "at $: it has no `values`"),
        ([], "at $: a union has a branch at least"),
        (["null", ["int"]], "at $: a union has no union as a branch"),
        (3, "at $: 3 is no type"),
        ([AVRO, AVRO], "at $[1]: the type shop.Order is there twice"),
    ],
)
def test_an_invalid_schema_is_refused(tmp_path: Path, schema: Any, said: str) -> None:
    """The sentence has the place in it."""
    with pytest.raises(UsageProblem) as refused:
        schema_of(tmp_path, schema)

    assert f"schema.avsc is no valid Avro schema: {said}".replace(
        "schema: is no valid Avro schema: ", "schema: "
    ) in str(refused.value)


def test_a_file_that_is_no_json_is_refused(tmp_path: Path) -> None:
    """An .avdl file is another language."""
    with pytest.raises(UsageProblem, match=r"schema\.avsc is no JSON: "):
        Avro(text_file(tmp_path, "schema.avsc", "protocol P {}"))


def test_a_record_that_holds_itself_is_refused(tmp_path: Path) -> None:
    """No value of it ends."""
    schema = {"type": "record", "name": "R", "fields": [{"name": "r", "type": "R"}]}

    with pytest.raises(UsageProblem, match="each value of it holds another one"):
        schema_of(tmp_path, schema).make(Likely(random.Random(1)))


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("int", 2**31, r"at \$: 2147483648 is no value of the type int"),
        ("int", True, r"at \$: True is no value of the type int"),
        ("long", -(2**63) - 1, "is no value of the type long"),
        ("boolean", 1, "is no value of the type boolean"),
        ("string", None, "None is no value of the type string"),
        ("bytes", "€", "is no value of the type bytes"),
        ("double", float("inf"), "inf is no value of the type double"),
        (["null", "int"], "a", "'a' is of no branch of its union"),
        ({"type": "fixed", "name": "F", "size": 2}, "abc", "'abc' is no value of the type F"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "B", "'B' is no value of the type E"),
        ({"type": "array", "items": "int"}, [1, "a"], r"at \$\[1\]: 'a' is no value"),
        ({"type": "map", "values": "int"}, {"k": "a"}, r"at \$\.k: 'a' is no value"),
        (AVRO, {"idd": 1}, r"at \$: shop.Order has no field 'idd'"),
        (AVRO, {"id": "x"}, r"at \$: the field account is missing"),
    ],
)
def test_a_value_of_another_type_is_not_written(
    tmp_path: Path, kind: Any, value: object, said: str
) -> None:
    """A sample of a user may be such a value."""
    with pytest.raises(ValueError, match=said):
        schema_of(tmp_path, kind).encode(value)


def test_a_sample_finds_its_branch_of_a_union(tmp_path: Path) -> None:
    """JSON does not say which one it is: the first one that allows the value."""
    made = schema_of(tmp_path, ["null", "int", "double", "string", "bytes"])

    for value in (None, 3, 2.5, "a"):
        assert made.decode(made.encode(value)) == value
