"""Samples are JSON lines, and a line that cannot be used is named by its number."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from described import an_input, sends, values, written

from upheld.errors import UsageProblem
from upheld.generators import samples
from upheld.generators.samples import numbered, pool, read

RECORDS = (
    {"key": "a", "value": {"n": 1}, "headers": {"from": "shop"}},
    {"key": 7, "value": None},
    {"value": {"n": 3}},
)


@pytest.mark.parametrize(
    ("text", "fields", "said"),
    [
        ("", {}, "orders.jsonl holds no sample: each line of it that is not empty is one."),
        (" \n\n", {}, "holds no sample"),
        ('1\n2\n3\n4\n5\n6\n{"a":\n', {}, "orders.jsonl, line 7: it is no JSON: "),
        ('1\n\n"\ud800"\n', {}, "line 3: it is no JSON"),
        ("1\nNaN\n", {}, "line 2: it is no JSON: Out of range float values"),
        ("1\n1e999\n", {}, "line 2: it is no JSON: Out of range float values"),
        ("[" * 300 + "]" * 300, {}, "line 1: it is no JSON: it is nested more than 200 levels"),
        ('{"a": "x"}\n{"a": 1}\n{"b": 1}\n', {"key": "$.a"}, "line 3: it has no $.a, which `key`"),
        ('{"a": null}\n', {"key": "$.a"}, "line 1: $.a, which `key` names, is null; it is to be"),
        ('{"a": true}\n', {"key": "$.a"}, "is true; it is to be a text or a whole number."),
        ('{"a": 1.5}\n', {"unique": "$.a"}, "line 1: $.a, which `unique` names, is 1.5;"),
        ('{"a": 1}\n[]\n', {"unique": "$.a"}, "line 2: it has no $.a, which `unique` names."),
        ('{"key": 1, "value": 2}\n3\n', {}, "line 2: it is no record: an object with key, value"),
        ('{"key": {}, "value": 2}\n', {}, "line 1: its key is {}; a key is a text or a whole"),
        ('{"value": 2, "headers": {"a": 1}}\n', {"lines": "records"}, 'headers are {"a": 1}; they'),
        ('{"value": 2, "headers": []}\n', {"lines": "records"}, "its headers are []; they are an"),
        ('"aGVsbG8"\n', {"format": "bytes"}, "line 1: its value cannot be written as bytes: it is"),
        ('"aGk="\n1\n', {"format": "bytes"}, "line 2: its value cannot be written as bytes"),
    ],
)
def test_a_mistake_is_a_sentence(
    tmp_path: Path, text: str, fields: dict[str, Any], said: str
) -> None:
    """It is found before any record is made, and says where it stands."""
    (tmp_path / "orders.jsonl").write_bytes(text.encode(errors="surrogatepass"))

    with pytest.raises(UsageProblem) as refused:
        sends(tmp_path, **fields)

    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """The line with the first byte that is not UTF-8 is named."""
    (tmp_path / "orders.jsonl").write_bytes(b'"a"\n"\xff"\n')

    with pytest.raises(UsageProblem, match="line 2: it is no JSON"):
        sends(tmp_path)


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    """Its size is enough; it is not read."""
    file = tmp_path / "orders.jsonl"
    file.touch()
    os.truncate(file, samples.MOST_BYTES + 1)

    with pytest.raises(UsageProblem, match=f"it has more than {samples.MOST_BYTES} bytes"):
        read(file)


def test_lines_with_key_and_value_are_records(tmp_path: Path) -> None:
    """Keys, headers and a tombstone come through; a record may lack a key."""
    found = read(written(tmp_path, RECORDS))

    assert [sample.key.data for sample in found] == [b"a", b"7", None]
    assert [sample.drawn.value for sample in found] == [{"n": 1}, None, {"n": 3}]
    assert [sample.drawn.has_value for sample in found] == [True, False, True]
    assert found[0].drawn.headers == (("from", b"shop"),)


def test_records_go_with_their_own_keys(tmp_path: Path) -> None:
    """A value of one key never gets another one, where no field is named as the key."""
    written(tmp_path, RECORDS)
    made = sends(tmp_path, count=200)

    whole = {(send.key, send.value, send.headers) for send in made}
    assert whole == {
        (b"a", b'{"n":1}', (("from", b"shop"),)),
        (b"7", None, ()),
        (None, b'{"n":3}', ()),
    }


def test_a_description_may_say_what_lines_are(tmp_path: Path) -> None:
    """A value may look like a record."""
    written(tmp_path, RECORDS[:1])

    (one,) = sends(tmp_path, lines="values", count=1)

    assert one.key is None
    assert values([one]) == [RECORDS[0]]


def test_other_objects_are_values(tmp_path: Path) -> None:
    """A field beside key, value and headers is one of a value."""
    written(tmp_path, [{"key": "a", "value": 1, "unit": "m"}])

    assert values(sends(tmp_path, count=1)) == [{"key": "a", "value": 1, "unit": "m"}]


def test_a_null_is_a_value(tmp_path: Path) -> None:
    """Only a record with a value of null is a tombstone."""
    written(tmp_path, [None])

    assert sends(tmp_path, count=1)[0].value == b"null"


def test_bytes_are_unpacked(tmp_path: Path) -> None:
    """A record has the bytes, whatever they are."""
    written(tmp_path, ["AP8="])

    assert sends(tmp_path, count=1, format="bytes")[0].value == b"\x00\xff"


def test_a_value_keeps_its_form(tmp_path: Path) -> None:
    """Order of fields, letters, nulls and large numbers come through."""
    text = '{"z":null,"a":"ß\\u0000","n":123456789012345678901234567890,"f":0.1,"e":[]}'
    (tmp_path / "orders.jsonl").write_text(f"\ufeff{text}\r\n", encoding="utf-8")

    assert sends(tmp_path, count=1)[0].value == text.encode()


def test_keys_come_as_they_were_found() -> None:
    """Each once, and no more than are wanted."""
    assert [key.value for key in pool(["b", "a", "b", "c"], None)] == ["b", "a", "c"]
    assert [key.value for key in pool(["b", "a", "b", "c"], 2)] == ["b", "a"]


@pytest.mark.parametrize(
    ("found", "form"), [(["acc-17"], r"acc-\d\d"), ([4711], r"\d{1,4}"), (["a"], r"a(-\d+)?")]
)
def test_more_keys_have_the_form_of_the_others(found: list[Any], form: str) -> None:
    """They are all different, and of the same type."""
    keys = pool(found, 40)

    assert len({key.data for key in keys}) == 40
    for key in keys:
        assert type(key.value) is type(found[0])
        assert re.fullmatch(form, str(key.value))


def test_a_form_that_is_used_up_gets_longer() -> None:
    """One digit makes ten keys, and others are still found."""
    assert len({key.data for key in pool(["k1"], 300)}) == 300


@pytest.mark.parametrize(
    ("like", "new"),
    [("o-007", "o-038"), ("o-7b", "o-38b"), ("a1b2", "a1b38"), ("order", "order-38"), (5, 38)],
)
def test_a_number_stands_where_a_number_stood(like: object, new: object) -> None:
    """So an id keeps its form."""
    assert numbered(like, 38) == new


def test_a_description_reads_its_file_anew(tmp_path: Path) -> None:
    """Samples that a user has changed are not kept from before."""
    found = an_input(tmp_path, count=1)
    before = samples.read(found.sample)
    written(tmp_path, [json.loads("1")])

    assert len(samples.read(found.sample)) == 1 < len(before)
