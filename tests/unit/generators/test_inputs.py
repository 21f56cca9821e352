"""The records of a user's input: seeded, placed as Kafka places them, and skewed."""

import os
import subprocess
import sys
import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from described import ORDERS, an_input, sends, values, written
from hypothesis import given
from hypothesis import strategies as st

from upheld.generators.inputs import facts, made, made_for
from upheld.generators.placement import partition_of

SCRIPT = """
import hashlib, sys
from pathlib import Path
from upheld.generators.inputs import made
from upheld.protocol.inputs import described
fields = {"topic": "t", "sample": "orders.jsonl", "key": "$.account", "keys": 30,
          "unique": "$.id", "aborted_transactions": 3}
found = described(fields, where="here", folder=Path(sys.argv[1]))
print(hashlib.sha256(repr(made(found, 7)).encode()).hexdigest())
"""
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.integers()
FIELDS = st.fixed_dictionaries(
    {
        "partitions": st.integers(1, 9),
        "skew": st.floats(0, 3),
        "count": st.integers(1, 60),
        "aborted_transactions": st.integers(0, 3),
    },
    optional={"keys": st.integers(1, 30), "unique": st.just("$.id")},
)


@given(
    keys=st.lists(KEYS, min_size=1, max_size=5),
    rest=JSON,
    fields=FIELDS,
    seed=st.integers(0, 2**63 - 1),
)
def test_any_description_keeps_what_is_said_of_all(
    keys: list[Any], rest: Any, fields: dict[str, Any], seed: int
) -> None:
    """One seed makes the same bytes, and each key lies where murmur2 says.

    Each id is there once, and all else is as it was.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written(folder, [{"id": n, "key": key, "rest": rest} for n, key in enumerate(keys)])
        found = an_input(folder, key="$.key", **fields)
        records = made(found, seed)

        assert records == made(found, seed)
    assert sum(not send.aborted for send in records) == fields["count"]
    for send, value in zip(records, values(records), strict=True):
        assert send.key == str(value["key"]).encode()
        assert send.partition == partition_of(send.key, fields["partitions"])
        assert value["rest"] == rest
    if "unique" in fields:
        assert len({value["id"] for value in values(records)}) == len(records)


def test_one_seed_makes_the_same_bytes_in_any_process(tmp_path: Path) -> None:
    """Not even the order of sets reaches a record."""
    written(tmp_path, ORDERS)
    digests = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT, tmp_path],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for hash_seed in ("1", "2")
    }

    assert len(digests) == 1


def test_another_seed_makes_other_records(tmp_path: Path) -> None:
    """So does a later wave, which has the same keys."""
    found = an_input(tmp_path, key="$.account", keys=20, unique="$.id", count=300)
    first, second, later = made(found, 1), made(found, 2), made(found, 1, wave=1)

    assert first != second
    ids = {value["id"] for value in values(first)} & {value["id"] for value in values(later)}
    assert not ids
    assert {send.key for send in first} == {send.key for send in later}
    assert first[-1].timestamp_ms < later[0].timestamp_ms


@pytest.mark.parametrize(("skew", "least", "most"), [(0, 0.02, 0.09), (1.1, 0.2, 0.4), (3, 0.7, 1)])
def test_a_few_keys_have_most_of_the_records(
    tmp_path: Path, skew: float, least: float, most: float
) -> None:
    """The share of the first of 20 keys is that of Zipf's law."""
    made = sends(tmp_path, key="$.account", keys=20, skew=skew, count=2_000)
    counts = Counter(send.key for send in made)

    assert least <= counts.most_common(1)[0][1] / len(made) <= most


def test_which_keys_are_frequent_hangs_on_the_seed(tmp_path: Path) -> None:
    """The first sample's key is not the frequent one in every run."""
    frequent = {
        Counter(send.key for send in sends(tmp_path, seed, key="$.account")).most_common(1)[0][0]
        for seed in range(8)
    }

    assert len(frequent) > 2


def test_samples_without_keys_take_the_partitions_in_turn(tmp_path: Path) -> None:
    """So no partition is empty."""
    made = sends(tmp_path, count=8, partitions=4)

    assert [send.key for send in made] == [None] * 8
    assert [send.partition for send in made] == [0, 1, 2, 3] * 2


@pytest.mark.parametrize("fields", [{}, {"key": "$.account"}])
def test_aborted_transactions_stand_between_and_at_the_end(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    """They are numbered in their order, and the last one ends each partition."""
    made = sends(tmp_path, aborted_transactions=4, count=400, **fields)
    numbers = [send.transaction for send in made if send.transaction is not None]
    last = {send.partition: send.transaction for send in made}

    assert sorted(set(numbers)) == [0, 1, 2, 3]
    assert all(before <= after for before, after in pairwise(numbers))
    assert set(last.values()) == {3}
    assert made[0].transaction is None
    assert sum(not send.aborted for send in made) == 400


def test_the_timestamps_follow_the_rate(tmp_path: Path) -> None:
    """They rise with each record."""
    made = sends(tmp_path, rate=100, count=101)
    times = [send.timestamp_ms for send in made]

    assert times == sorted(times)
    assert times[-1] - times[0] == 1_000


def test_a_uuid_becomes_another_one(tmp_path: Path) -> None:
    """A text with digits would be no UUID any more after some."""
    one = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"
    written(tmp_path, [{"id": one}])
    ids = [value["id"] for value in values(sends(tmp_path, unique="$.id", count=50))]

    assert len(set(ids)) == 50
    assert {len(each) for each in ids} == {len(one)}
    assert {each[14] for each in ids} == {"4"}


def test_facts_count_what_a_report_states(tmp_path: Path) -> None:
    """Aborted records are counted apart."""
    made = sends(tmp_path, key="$.account", count=300, aborted_transactions=1)
    found = facts(made)

    assert found["records"] == len(made) == found["entries"] + found["aborted"]
    assert (found["entries"], found["keys"]) == (300, 7)
    assert found["partitions"] == len({send.partition for send in made})


def test_several_inputs_have_equal_shares(tmp_path: Path) -> None:
    """Each record has the role of its input, and no id comes twice."""
    described = an_input(tmp_path, key="$.account", unique="$.id", keys=5)
    size = {"count": 11, "partitions": 2, "aborted_transactions": 2}

    both = made_for({"orders": described, "refunds": described}, 7, wave=1, **size)
    alone = made_for({"orders": described}, 7, wave=1, **size)

    counted = Counter(send.role for send in both if not send.aborted)
    ids = [value["id"] for value in values(both)]
    assert counted == {"orders": 6, "refunds": 5}
    assert len(set(ids)) == len(ids)
    assert {send.transaction for send in both} == {None, 0, 1, 2, 3}
    assert {send._replace(role="") for send in alone} == set(
        made(described.model_copy(update=size), 7, wave=1)
    )
