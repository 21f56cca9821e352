"""`upheld sample` prints records as lines of JSON, without a broker."""

import json
from pathlib import Path
from typing import Any

import pytest
from described import ORDERS, written

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
