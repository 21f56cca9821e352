"""Each value of a JSON Schema is valid, and a schema without values is refused."""

import json
import random
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from schema_files import JSON_SCHEMA, text_file

from upheld.errors import UsageProblem
from upheld.generators.schemas.json_schema import JsonSchema
from upheld.generators.schemas.likely import Likely

TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "required": ["name", "children"],
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            },
        }
    },
}
DRAFT_4 = {
    "$schema": "http://json-schema.org/draft-04/schema#",
    "type": "object",
    "required": ["n", "pair"],
    "properties": {
        "n": {"type": "integer", "minimum": 3, "exclusiveMinimum": True, "maximum": 5},
        "pair": {"type": "array", "items": [{"type": "string"}, {"type": "null"}], "minItems": 2},
    },
    "dependencies": {"n": ["other"]},
}
CONDITION = {
    "type": "object",
    "required": ["country", "code"],
    "properties": {"country": {"enum": ["UK", "NL"]}, "code": {"type": "string"}},
    "if": {"properties": {"country": {"const": "NL"}}},
    "then": {"properties": {"code": {"pattern": "^[1-9][0-9]{3} [A-Z]{2}$"}}},
    "else": {"properties": {"code": {"maxLength": 3}}},
}
SCHEMAS = {
    "order": JSON_SCHEMA,
    "tree": TREE,
    "draft 4": DRAFT_4,
    "condition": CONDITION,
    "anything": True,
    "nothing said": {},
    "an anchor": {"$ref": "#a", "$defs": {"x": {"$anchor": "a", "type": "boolean"}}},
    "types": {"type": ["integer", "null", "array"], "multipleOf": 7, "maximum": -1},
    "number": {"exclusiveMinimum": 0.1, "exclusiveMaximum": 0.2},
    "large number": {"type": "number", "minimum": 1e300},
    "cents": {"type": "number", "multipleOf": 0.01, "minimum": 0, "maximum": 10},
    "whole and half": {"type": "integer", "multipleOf": 2.5},
    "all of": {"allOf": [{"type": "number"}, {"type": "integer"}, {"minimum": 5, "maximum": 6}]},
    "any of": {"properties": {"a": {"anyOf": [{"const": 1}, {"type": "string"}]}}},
    "one of": {"oneOf": [{"type": "integer"}, {"type": "number", "multipleOf": 0.5}]},
    "not": {"type": "integer", "minimum": 0, "maximum": 3, "not": {"enum": [0, 1, 2]}},
    "properties": {"type": "object", "minProperties": 3, "maxProperties": 4},
    "names": {"type": "object", "minProperties": 2, "propertyNames": {"pattern": "^x-[a-z]+$"}},
    "patterns": {
        "type": "object",
        "minProperties": 2,
        "patternProperties": {"^n": {"type": "integer"}},
        "additionalProperties": False,
    },
    "dependent": {
        "properties": {"a": {"const": 1}, "b": {"const": 2}},
        "required": ["a"],
        "dependentRequired": {"a": ["b"], "b": ["c"]},
    },
    "tuple": {"prefixItems": [{"const": 1}, {"type": "null"}], "items": False, "minItems": 2},
    "unique": {"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "minItems": 3},
    "contains": {"type": "array", "items": {"type": "integer"}, "contains": {"const": 7}},
    "lengths": {"type": "string", "minLength": 30, "maxLength": 31},
    "float sizes": {"type": "string", "minLength": 2.0, "maxLength": 4.0},
    "float counts": {"type": "array", "minItems": 1.0, "maxItems": 2.0, "items": {}},
    "float parts": {"type": "object", "minProperties": 1.0, "maxProperties": 2.0},
    "wide": {"type": "number", "minimum": -1.7e308, "maximum": 1.7e308},
    "examples": {"type": "string", "examples": ["a", "b"], "maxLength": 20},
    **{
        form: {"type": "string", "format": form}
        for form in (
            *("date", "date-time", "time", "duration", "uuid", "email", "hostname", "ipv4"),
            *("ipv6", "uri", "uri-reference", "json-pointer", "regex", "unheard-of"),
        )
    },
}
PARTS = st.recursive(
    st.one_of(
        st.fixed_dictionaries({"type": st.sampled_from(["string", "boolean", "null", "number"])}),
        st.integers(-99, 99).map(
            lambda low: {"type": "integer", "minimum": low, "maximum": low + 9}
        ),
        st.sampled_from([3, 8]).map(lambda n: {"type": "string", "minLength": n, "maxLength": n}),
        st.lists(st.integers(0, 9), min_size=1, unique=True).map(lambda of: {"enum": of}),
        st.sampled_from(["^[a-f]{2,5}$", "x+y?", "(a|b)-[0-9]+"]).map(lambda p: {"pattern": p}),
    ),
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from("abcd"), inner, min_size=1).map(
            lambda named: {"type": "object", "properties": named, "required": sorted(named)[:1]}
        ),
        st.tuples(inner, st.integers(0, 3)).map(
            lambda pair: {"type": "array", "items": pair[0], "minItems": pair[1]}
        ),
        st.lists(inner, min_size=1, max_size=3).map(lambda of: {"anyOf": of}),
        inner.map(lambda part: {"allOf": [part, {"title": "a part"}]}),
    ),
    max_leaves=8,
)


def schema_of(folder: Path, schema: Any) -> JsonSchema:
    """Return a schema that stands in a file."""
    return JsonSchema(text_file(folder, "schema.json", json.dumps(schema)))


def is_valid(schema: Any, value: Any) -> bool:
    """Return whether a validator of its own finds a value valid."""
    kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    return bool(kind(schema, format_checker=kind.FORMAT_CHECKER).is_valid(value))


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_value_is_valid(tmp_path: Path, name: str) -> None:
    """A second validator agrees, and the bytes say the same as the value."""
    schema = SCHEMAS[name]
    made = schema_of(tmp_path, schema)
    likely = Likely(random.Random(1))

    for _ in range(20):
        value = made.make(likely)
        assert is_valid(schema, value), value
        assert made.decode(made.encode(value)) == value


@settings(max_examples=60)
@given(part=PARTS, seed=st.integers(0, 99))
def test_each_value_of_any_schema_is_valid(
    tmp_path_factory: pytest.TempPathFactory, part: Any, seed: int
) -> None:
    """Schemas that are made of common keywords all have values, and one seed has one."""
    made = schema_of(tmp_path_factory.getbasetemp(), part)

    value = made.make(Likely(random.Random(seed)))

    assert is_valid(part, value)
    assert value == made.make(Likely(random.Random(seed)))


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (False, "the schema allows nothing|a part of it allows nothing"),
        ({"enum": []}, "there is nothing to choose from"),
        ({"type": "integer", "minimum": 5, "maximum": 4}, "bounds of a number leave nothing"),
        ({"type": "number", "minimum": 5, "maximum": 4}, "bounds of a number leave nothing"),
        ({"type": "string", "pattern": "^a$", "minLength": 5}, "no text was found that '\\^a\\$'"),
        ({"allOf": [{"type": "null"}, {"type": "string"}]}, "two parts of it want different types"),
        ({"const": 1, "not": {"const": 1}}, r"at \$: 1 should not be valid"),
        ({"properties": {"a": {"type": "null"}}, "required": ["a"], "maxProperties": 0}, r"at \$:"),
        ({"type": "array", "items": {"const": 1}, "uniqueItems": True, "minItems": 2}, "different"),
        ({"type": "number", "minimum": 1e400}, "a bound of a number is not finite"),
        ({"minItems": 1_000_000_000}, "has to have more than 10000 parts"),
        (
            {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}},
            "references lead in a circle, or deeper than 40 levels",
        ),
        ({"$ref": "#"}, "references lead in a circle"),
        ({"allOf": [{"$ref": "#"}]}, "references lead in a circle"),
    ],
)
def test_a_schema_that_nothing_satisfies_is_refused(tmp_path: Path, schema: Any, said: str) -> None:
    """The sentence says why the last try failed."""
    with pytest.raises(UsageProblem, match=said) as refused:
        schema_of(tmp_path, schema).make(Likely(random.Random(1)))

    assert str(refused.value).startswith(f"{tmp_path}/schema.json: of 300 values that were made")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is no JSON: "),
        ("[]", "is no JSON Schema: it is to be an object."),
        (
            '{"properties": {"a": {"type": "strng"}}}',
            "is no valid JSON Schema: at $.properties.a.type: 'strng' is not valid under any",
        ),
        ('{"minimum": "3"}', "at $.minimum: '3' is not of type 'number'."),
        ('{"$schema": "http://json-schema.org/draft-04/schema#", "required": []}', "at $.required"),
    ],
)
def test_an_invalid_schema_is_refused(tmp_path: Path, text: str, said: str) -> None:
    """The sentence has the place in it."""
    with pytest.raises(UsageProblem) as refused:
        JsonSchema(text_file(tmp_path, "schema.json", text))

    assert said in str(refused.value)


@pytest.mark.parametrize(
    "reference", ["http://localhost:1/other.json", "#/$defs/gone", "other.json", "#nowhere"]
)
def test_a_reference_out_of_the_file_is_refused(tmp_path: Path, reference: str) -> None:
    """Nothing is fetched."""
    made = schema_of(tmp_path, {"$ref": reference})

    with pytest.raises(UsageProblem, match="leads to nothing in this file, and nothing else"):
        made.make(Likely(random.Random(1)))


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"pattern": "(a"}, "$.pattern"),
        ({"items": {"pattern": "\\p{L}"}}, "$.items.pattern"),
        ({"patternProperties": {"(a": {}}}, "$.patternProperties"),
    ],
)
def test_a_pattern_that_cannot_be_read_is_refused(tmp_path: Path, schema: Any, place: str) -> None:
    """The sentence has the place in it."""
    with pytest.raises(UsageProblem) as refused:
        schema_of(tmp_path, schema)

    assert f"is no valid JSON Schema: at {place}: " in str(refused.value)


def test_a_pattern_that_draft_4_lets_pass_is_refused(tmp_path: Path) -> None:
    """It is the schema that is wrong, and not a sample."""
    schema = {**DRAFT_4, "patternProperties": {"(a": {}}}
    made = schema_of(tmp_path, schema)
    value = {"n": 4, "pair": ["a", None], "other": 1}

    for ask in (lambda: made.make(Likely(random.Random(1))), lambda: made.encode(value)):
        with pytest.raises(UsageProblem, match=r"the pattern '\(a' cannot be followed: "):
            ask()


def test_names_tell_what_is_likely(tmp_path: Path) -> None:
    """A reader of a record sees what it is about."""
    names = ("email", "homeCity", "orderId", "created_at", "firstName")
    schema = {"type": "object", "required": names, "properties": {n: {} for n in names}}
    value = schema_of(tmp_path, schema).make(Likely(random.Random(1)))

    assert "@" in value["email"]
    assert len(value["orderId"]) == 36
    assert value["created_at"].endswith("Z")
    assert value["firstName"].istitle()


def test_a_value_that_is_not_valid_is_not_written(tmp_path: Path) -> None:
    """A sample of a user may be such a value."""
    with pytest.raises(ValueError, match=r"at \$\.a: 'x' is not of type 'integer'"):
        schema_of(tmp_path, {"properties": {"a": {"type": "integer"}}}).encode({"a": "x"})
    with pytest.raises(ValueError, match="its references lead in a circle"):
        schema_of(tmp_path, {"$ref": "#"}).encode({"a": "x"})
