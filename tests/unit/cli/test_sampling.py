"""`upheld sample` prints records as lines of JSON, without a broker."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from described import ORDERS, written
from schema_files import FILES, schema_file, text_file

from upheld import extras
from upheld.cli import main


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    """Return the records that the command prints."""
    assert main(["sample", *arguments]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_record_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It has its place, its time, its key, its value and its headers."""
    file = written(tmp_path, ORDERS)
    records = printed(capsys, str(file), "--key", "$.account", "--count", "3")

    assert len(records) == 3
    for record in records:
        assert list(record) == ["partition", "timestamp_ms", "key", "value", "headers"]
        assert record["key"] == record["value"]["account"]


def test_one_seed_prints_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Another seed prints other records."""
    file = str(written(tmp_path, ORDERS))
    first, same, other = (
        printed(capsys, file, "--key", "$.account", "--seed", seed) for seed in ("7", "7", "8")
    )

    assert first == same
    assert first != other


def test_bytes_are_printed_in_base64(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They may be no text, and the file has them so too; a tombstone is null."""
    records = [{"key": "a", "value": "AP8="}, {"key": "b", "value": None}]
    file = str(written(tmp_path, records))

    shown = printed(capsys, file, "--format", "bytes", "--count", "30")

    assert {(record["key"], record["value"]) for record in shown} == {("a", "AP8="), ("b", None)}


def test_a_mistake_ends_with_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is one sentence, and nothing is printed beside it."""
    file = str(written(tmp_path, ORDERS))

    assert main(["sample", file, "--key", "$.acount"]) == 4
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"upheld: {file}, line 1: it has no $.acount, which `key` names.\n"


@pytest.mark.parametrize("form", ["protobuf"] if extras.lack("schemas") else FILES)
def test_a_schema_is_known_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    """Its values are shown as JSON, whatever their bytes are."""
    file = str(schema_file(tmp_path, form))
    records = printed(capsys, file, "--key", "$.account", "--unique", "$.id", "--count", "4")

    assert len({record["value"]["id"] for record in records}) == 4
    assert all(record["key"] == record["value"]["account"] for record in records)


def test_a_sample_is_written_by_a_schema(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The value is what Protobuf has kept; another message refuses it."""
    file = str(written(tmp_path, [{"id": "o-1", "cents": 3}]))
    schema = str(schema_file(tmp_path, "protobuf"))

    (record,) = printed(capsys, file, "--schema", schema, "--count", "1")
    assert record["value"] == {"id": "o-1", "cents": "3"}

    (line,) = printed(capsys, file, "--schema", schema, "--message", "Order", "--count", "1")
    assert line == record
    assert main(["sample", file, "--schema", schema, "--message", "Line"]) == 4
    assert "line 1: its value cannot be written as protobuf" in capsys.readouterr().err


def test_lines_in_a_file_of_json_are_samples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two values are no schema, and neither is a list."""
    for text in ('{"a": 1}\n{"a": 1}\n', "[1]"):
        file = text_file(tmp_path, "orders.json", text)
        value = printed(capsys, str(file), "--count", "1")[0]["value"]
        assert value in ({"a": 1}, [1])


def test_without_the_extra_its_name_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine lacks something: exit code 3."""
    monkeypatch.setitem(sys.modules, "fastavro", None)

    assert main(["sample", str(schema_file(tmp_path, "avro"))]) == 3
    assert capsys.readouterr().err == (
        "upheld: An Avro schema cannot be used: the Python module fastavro is not installed "
        "(`pip install 'upheld[schemas]'` brings it).\n"
    )
