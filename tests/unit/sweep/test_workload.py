"""The waves of a sweep, for designs and for applications without an adapter."""

import json
from collections.abc import Sequence
from pathlib import Path

from upheld.generators.ledger import Send
from upheld.protocol.inputs import Input
from upheld.protocol.json_path import JsonPath
from upheld.protocol.subject import OutputTable, ProcessTable, Subject
from upheld.sweep.workload import ACCOUNTS, ENTRIES, PARTITIONS, prepare
from upheld.trial import application

TOLD = ("{bootstrap}", "{input.orders}", "{output.costs}")


def own(folder: Path) -> Subject:
    """Return an application whose orders are drawn from two samples."""
    sample = folder / "orders.jsonl"
    lines = [{"id": "o-1", "account": "ada"}, {"id": "o-2", "account": "bob"}]
    sample.write_text("".join(json.dumps(line) + "\n" for line in lines))
    path = JsonPath.read
    described = Input(topic="orders", sample=sample, key=path("$.account"), unique=path("$.id"))
    return Subject(
        shape="map",
        group="{application_id}",
        input={"orders": described},
        output={"costs": OutputTable()},
        process={"app": ProcessTable(command=("app", *TOLD))},
    )


def waves(subject: Subject | None, seed: int, numbers: Sequence[int]) -> list[Sequence[Send]]:
    """Return waves of a workload by their numbers."""
    state = application.Input()
    prepare(state, subject, seed)
    assert state.wave
    return [state.wave(wave=number) for number in numbers]


def test_an_aborted_half_comes_before_each_committed_one(tmp_path: Path) -> None:
    """Only the second half counts, and it has as many records for whatever is swept."""
    for subject in (None, own(tmp_path)):
        aborted, committed, again, other = waves(subject, 7, range(4))

        assert aborted
        assert again
        assert all(send.aborted for send in (*aborted, *again))
        assert not any(send.aborted for send in (*committed, *other))
        assert len(committed) == len(other) == ENTRIES
        assert {send.partition for send in committed} <= set(range(PARTITIONS))
        assert committed != other


def test_the_records_of_an_application_are_its_own(tmp_path: Path) -> None:
    """They are drawn from its samples, over a few keys, and one seed makes them again."""
    subject = own(tmp_path)
    (first,), (same,), (others,) = (waves(subject, seed, [1]) for seed in (7, 7, 8))

    assert first == same != others
    assert all(json.loads(send.value or b"").keys() == {"id", "account"} for send in first)
    assert len({json.loads(send.value or b"")["id"] for send in first}) == ENTRIES
    assert len({send.key for send in first}) <= ACCOUNTS
