"""Values of a schema have keys of a pool, and the format of their input."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from schema_files import FILES, schema_file, text_file

from upheld.errors import UsageProblem
from upheld.generators.formats import format_of, schema_of
from upheld.generators.inputs import made
from upheld.generators.placement import partition_of
from upheld.generators.schemas.made import BANK
from upheld.protocol.inputs import Input, described


def an_input(folder: Path, form: str, **fields: Any) -> Input:
    """Describe an input of orders that are made from the schema of a format."""
    table = {"topic": "orders", "schema": schema_file(folder, form), "format": form} | fields
    return described(table, where="design.toml", folder=folder)


def of_schema(folder: Path, schema: Any, **fields: Any) -> Input:
    """Describe an input whose values a JSON Schema allows."""
    file = text_file(folder, "schema.json", json.dumps(schema))
    table = {"topic": "orders", "schema": file} | fields
    return described(table, where="design.toml", folder=folder)


@pytest.mark.parametrize("form", FILES)
def test_each_record_has_a_key_of_the_pool_and_an_id_of_its_own(tmp_path: Path, form: str) -> None:
    """Each is valid, lies where murmur2 says, and one seed makes the same bytes."""
    fields = {"key": "$.account", "keys": 9, "unique": "$.id", "aborted_transactions": 2}
    found = an_input(tmp_path, form, count=120, **fields)
    schema = schema_of(found)
    records = made(found, 5)
    values = [format_of(found, schema).decode(send.value or b"") for send in records]

    assert records == made(found, 5)
    assert schema is not None
    assert {schema.problem(value) for value in values} == {""}
    assert [value["account"].encode() for value in values] == [send.key for send in records]
    assert len({send.key for send in records}) == 9
    assert len({value["id"] for value in values}) == len(records)
    for send in records:
        assert send.partition == partition_of(send.key or b"", 4)


@pytest.mark.parametrize("form", FILES)
def test_the_frequent_keys_are_those_of_zipf(tmp_path: Path, form: str) -> None:
    """A later wave has the same keys, and other records."""
    found = an_input(tmp_path, form, count=300, key="$.account", keys=20, unique="$.id")
    first = made(found, 5)
    later = made(found, 5, wave=1)

    assert Counter(send.key for send in first).most_common(1)[0][1] > 300 * 0.15
    assert {send.key for send in later} & {send.key for send in first}
    assert not {send.value for send in later} & {send.value for send in first}


@pytest.mark.parametrize("form", FILES)
def test_a_sample_is_written_by_the_schema(tmp_path: Path, form: str) -> None:
    """Made values can be a file of samples, which make the same bytes."""
    found = an_input(tmp_path, form, count=3)
    schema = schema_of(found)
    values = [format_of(found, schema).decode(send.value or b"") for send in made(found, 1)]
    file = text_file(tmp_path, "orders.jsonl", "\n".join(map(json.dumps, values)))
    again = made(an_input(tmp_path, form, sample=file, count=50), 1)

    assert {send.value for send in again} == {send.value for send in made(found, 1)}


@pytest.mark.parametrize("form", FILES)
def test_a_sample_that_the_schema_does_not_allow_is_refused(tmp_path: Path, form: str) -> None:
    """The sentence has the file and the line."""
    file = text_file(tmp_path, "orders.jsonl", '{"idd": 3}')

    with pytest.raises(UsageProblem, match=f"line 1: its value cannot be written as {form}: "):
        made(an_input(tmp_path, form, sample=file), 1)


def test_a_long_workload_has_its_values_again(tmp_path: Path) -> None:
    """Each has another key and another id, so that no two records are equal."""
    schema = {
        "type": "object",
        "required": ["id", "k", "n"],
        "properties": {
            "id": {"type": "integer"},
            "k": {"pattern": "^[a-z]{3}$"},
            "n": {"type": "integer", "maximum": 10**9, "minimum": 0},
        },
    }
    found = of_schema(tmp_path, schema, key="$.k", unique="$.id", count=BANK + 200)
    values = [json.loads(send.value or b"") for send in made(found, 1)]

    assert len({value["n"] for value in values}) == BANK
    assert len({value["id"] for value in values}) == BANK + 200


@pytest.mark.parametrize(
    ("schema", "fields", "said"),
    [
        ({"type": "object"}, {"key": "$.a"}, "none has $.a, which `key` names, as a text or a"),
        (
            {"properties": {"a": {"type": "number", "minimum": 0.1, "maximum": 0.2}}},
            {"unique": "$.a"},
            "none has $.a, which `unique` names",
        ),
        (
            {"type": "object", "required": ["a"], "properties": {"a": {"enum": ["x", "y"]}}},
            {"unique": "$.a"},
            "A value for orders, with another key or id in its place, cannot be written as json",
        ),
    ],
)
def test_a_field_of_no_use_is_refused(
    tmp_path: Path, schema: Any, fields: dict[str, Any], said: str
) -> None:
    """It is a sentence, whatever the schema."""
    with pytest.raises(UsageProblem) as refused:
        made(of_schema(tmp_path, schema, **fields), 1)

    assert said in str(refused.value)


def test_a_key_stands_in_values_that_allow_it(tmp_path: Path) -> None:
    """A value of another key may not be valid with this one, and is passed over."""
    pairs = [
        {"properties": {"k": {"const": k}, "n": {"const": n}}} for k, n in (("a", 1), ("b", 2))
    ]
    schema = {"type": "object", "required": ["k", "n"], "oneOf": pairs}

    records = made(of_schema(tmp_path, schema, key="$.k", count=60), 1)

    assert {send.value for send in records} == {b'{"k":"a","n":1}', b'{"k":"b","n":2}'}


def test_a_schema_with_few_keys_has_few(tmp_path: Path) -> None:
    """`keys` is the most that there are."""
    schema = {"type": "object", "required": ["a"], "properties": {"a": {"enum": ["x", "y"]}}}

    records = made(of_schema(tmp_path, schema, key="$.a", keys=50, count=50), 1)

    assert {send.key for send in records} == {b"x", b"y"}


def test_an_input_with_a_registry_needs_an_id(tmp_path: Path) -> None:
    """Its values would be read by no deserializer."""
    with pytest.raises(ValueError, match="needs the id of its schema"):
        made(an_input(tmp_path, "avro", registry=True), 1)


@pytest.mark.parametrize(
    ("form", "frame"),
    [
        ("avro", b"\0\0\0\1\2"),
        ("json-schema", b"\0\0\0\1\2"),
        ("protobuf", b"\0\0\0\1\2\0"),
    ],
)
def test_the_wire_format_begins_with_the_id(tmp_path: Path, form: str, frame: bytes) -> None:
    """A byte of magic, four of the id, and for Protobuf the place of the message."""
    found = an_input(tmp_path, form, registry=True, count=5)
    plain = made(found.model_copy(update={"registry": False}), 1)

    framed = made(found, 1, schema_id=258)

    assert [send.value for send in framed] == [frame + (send.value or b"") for send in plain]
    form_of = format_of(found, schema_of(found), 258)
    assert form_of.encode(form_of.decode(framed[0].value or b"")) == framed[0].value
