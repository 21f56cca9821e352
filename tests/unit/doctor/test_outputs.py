"""The doctor judges outputs that nobody modelled."""

import json
from pathlib import Path
from typing import Any

import pytest

from upheld.doctor.outputs import Texts, judged, told_apart
from upheld.doctor.seen import Outputs
from upheld.generators.ledger import Send
from upheld.history.events import Record
from upheld.programs.shown import PAIRS, increasing
from upheld.protocol.inputs import Input


def outputs(*values: bytes | None) -> list[Record]:
    """Return records of an output."""
    return [Record("o", 0, number, 0, b"k", value) for number, value in enumerate(values)]


def send(value: Any, transaction: int | None = None) -> Send:
    """Return a record of the input."""
    return Send(b"k", json.dumps(value).encode(), (), 0, 0, transaction)


def described(unique: str | None) -> Input:
    """Return an input whose records differ in a field."""
    return Input.model_validate({"topic": "i", "sample": Path("a.jsonl"), "unique": unique})


def test_an_output_that_is_no_json_is_unreadable() -> None:
    """A tombstone has no value to be read."""
    found = judged(outputs(b"{}", b"{'a': 1}", None), Texts(), "json")

    assert (found.count, found.unreadable, found.first_unreadable) == (3, 1, "{'a': 1}")


def test_bytes_are_never_unreadable() -> None:
    """They are compared as they are."""
    assert judged(outputs(b"\xff"), Texts(), "bytes").unreadable == 0


@pytest.mark.parametrize(
    ("value", "count"),
    [({"of": "o-7"}, 0), ({"of": "order-7"}, 1), ({"all": [{"of": "order-7"}]}, 1)],
)
def test_an_output_of_an_aborted_record_has_its_text(value: Any, count: int) -> None:
    """It may stand anywhere in the value."""
    texts = Texts(aborted=frozenset({"order-7"}))

    assert judged(outputs(json.dumps(value).encode()), texts, "json").aborted == count


def test_numbers_that_grow_with_each_output_of_a_key_are_found() -> None:
    """A number that stays once is none of them, and few outputs show nothing."""
    values = [
        {"count": n, "of": {"total": 2 * n}, "balance": min(n, PAIRS - 1), "id": str(n), "ok": True}
        for n in range(PAIRS + 1)
    ]
    states = outputs(*(json.dumps(value).encode() for value in values))

    assert increasing(states) == ("$.count", "$.of.total")
    assert increasing(states, ["$.count"]) == ("$.of.total",)
    assert increasing(states[:-1]) == ()
    assert increasing([*states, states[0]._replace(key=b"j")]) == ("$.count", "$.of.total")
    assert increasing([*states, *outputs(None)]) == ()
    assert judged(states, Texts(), "json").increasing == ("$.count", "$.of.total")


def test_only_what_aborted_records_alone_have_tells_them_apart() -> None:
    """A record that is written again after an abort counts as committed."""
    sent = [
        send({"id": "order-1"}),
        send({"id": "order-2"}, transaction=0),
        send({"id": "order-1"}, transaction=0),
        send({"id": 12_345}, transaction=0),
        send({"id": "abc"}, transaction=0),
    ]

    assert told_apart(described("$.id"), sent) == Texts(
        kept=frozenset({"order-1"}), aborted=frozenset({"order-2"})
    )
    assert told_apart(described(None), sent) == Texts()


@pytest.mark.parametrize(
    ("values", "traced"),
    [
        ([b'{"order": "order-1", "cents": 3}', b'{"order": "order-2"}'], 2),
        ([b"large: order-1"], 1),  # an output need be no JSON
        ([b'{"order": "order-1"}', b'{"order": "order-1"}'], 1),
        ([b'{"from": "order-1", "to": "order-2"}'], 0),
        ([b'{"order": "order-11"}', b'{"cents": 3}'], 0),
    ],
)
def test_an_output_that_has_one_id_comes_of_one_record(values: list[bytes], traced: int) -> None:
    """An id that is a part of a longer one is none."""
    texts = Texts(kept=frozenset({"order-1", "order-2"}))

    assert judged(outputs(*values), texts, "json").traced == traced


@pytest.mark.parametrize(
    ("count", "traced", "increasing", "is_map"),
    [
        (60, 60, ("$.at",), True),  # a clock grows, too
        (60, 0, (), True),
        (20, 20, (), True),  # it leaves some records out
        (60, 0, ("$.orders",), False),
        (8, 0, ("$.orders",), False),
        (8, 8, ("$.orders",), False),  # the last order of an account beside its total
        (8, 0, (), False),  # whatever it is: less is compared, and that is right
    ],
)
def test_the_shape_is_that_of_the_outputs(
    count: int, traced: int, increasing: tuple[str, ...], *, is_map: bool
) -> None:
    """A map has an output of each record, or says of which record each one is."""
    written = Outputs(count=count, traced=traced, increasing=increasing)

    assert written.is_of_single_records(60) == is_map
