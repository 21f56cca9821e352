"""A mistake in the description of an input is said in one sentence with its field."""

from pathlib import Path
from typing import Any

import pytest
from described import an_input

from upheld.errors import UsageProblem
from upheld.protocol.inputs import Input, described

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"fromat": "json"}, "`fromat` is not a field of an input; known are topic, partitions"),
        ({"fromat": "json"}, "Did you mean format?"),
        ({"format": "jsno"}, "`format` is 'jsno': there is no such format; there are json, bytes"),
        ({"format": "jsno"}, "Did you mean json?"),
        ({"topic": ""}, "`topic` is '': string should have at least 1 character."),
        ({"topic": "a/b"}, "`topic` is 'a/b': string should match pattern"),
        ({"partitions": 0}, "`partitions` is 0: input should be greater than or equal to 1."),
        ({"partitions": "4"}, "`partitions` is '4': input should be a valid integer."),
        ({"count": 1_000_001}, "`count` is 1000001: input should be less than or equal to 1000000"),
        ({"skew": float("nan")}, "`skew` is nan: input should be a finite number."),
        ({"rate": 0}, "`rate` is 0: input should be greater than 0."),
        ({"key": "account"}, "`key` is 'account': a path begins with $, such as $.account."),
        ({"key": "$.*"}, "`key` is '$.*': '.*' in it leads to no single place"),
        ({"key": 3}, "`key` is 3: "),
        ({"lines": "both"}, "`lines` is 'both': input should be 'values' or 'records'."),
        ({"keys": 3}, "`keys` needs `key`, the field in which keys stand."),
        ({"key": "$.id", "unique": "$.id"}, "`key` and `unique` are one field"),
        ({"format": "bytes", "key": "$.id"}, "the format bytes has no field for `key`."),
        ({"format": "bytes", "unique": "$.id"}, "the format bytes has no field for `unique`."),
        ({"format": "avro"}, "the format avro needs a `schema`."),
        ({"format": "json-schema"}, "the format json-schema needs a `schema`."),
        ({"sample": None}, "it needs a `sample` or a `schema`."),
        ({"format": "bytes", "sample": None, "schema": "a"}, "the format bytes needs a `sample`."),
        ({"format": "bytes", "schema": "a"}, "the format bytes has no `schema`."),
        ({"message": "Order"}, "`message` is for the format protobuf alone."),
        ({"registry": True}, "the format json has no `registry`; avro, protobuf and json-schema"),
        ({"registry": "localhost:8081"}, "`registry` is 'localhost:8081': a registry is true, for"),
        ({"sample": None, "schema": "a", "lines": "values"}, "`lines` is for a `sample` alone."),
        ({"schema": "other.avsc", "format": "avro"}, "`schema` is "),
        ({"shema": "other.avsc"}, "Did you mean schema?"),
        ({"sample": "other.jsonl"}, "other.jsonl, and there is no such file."),
        ({"sample": "."}, "and there is no such file."),
    ],
)
def test_a_mistake_is_a_sentence(tmp_path: Path, fields: dict[str, Any], said: str) -> None:
    """The sentence begins with the file and the table."""
    with pytest.raises(UsageProblem) as refused:
        an_input(tmp_path, **fields)

    sentence = str(refused.value)
    assert sentence.startswith("design.toml, [input.orders]: ")
    assert said in sentence
    assert sentence.endswith((".", "?"))
    assert "\n" not in sentence


def test_a_field_that_is_missing_is_named(tmp_path: Path) -> None:
    """Nothing can be fed to a topic without a name."""
    with pytest.raises(UsageProblem, match="the field `topic` is missing"):
        described({"sample": "x"}, where="design.toml", folder=tmp_path)


def test_files_lead_from_the_folder_of_the_description(tmp_path: Path) -> None:
    """A run from another folder reads the same samples."""
    assert an_input(tmp_path).sample == tmp_path / "orders.jsonl"


def test_the_page_has_every_field() -> None:
    """A reader finds each field of a description, and no other one."""
    page = (ROOT / "docs" / "inputs.md").read_text(encoding="utf-8")
    table = page.partition("<!-- fields -->")[2].partition("<!-- /fields -->")[0]
    cells = [line.split("|")[1].strip(" `") for line in table.splitlines() if "| `" in line[:3]]

    assert cells == [field.alias or name for name, field in Input.model_fields.items()]
