"""The sweep where nobody runs: which places there are, what is remembered of them, and how it
ends.
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from upheld.errors import UsageProblem
from upheld.spec.depths import DEPTHS
from upheld.sweep import (
    AGREED,
    SIDES,
    Cut,
    Record,
    Result,
    Sweep,
    card,
    cuts,
    exit_code,
    is_steady,
    pairs,
    run,
    shortest,
    table,
    within,
)
from upheld.ui.progress import Progress
from upheld.verdicts import Anomaly, Verdict

TRACE = [
    ("start", "init_producer_id"),
    ("start", "fetch"),
    ("transaction-1", "produce"),
    ("transaction-1", "produce"),
    ("transaction-1", "end_txn"),
    ("transaction-2", "produce"),
]
CUT = Cut(phase="transaction-1", api="end_txn", number=1, side="after")


def result(verdict: Verdict | None, cut: Cut = CUT) -> Result:
    """What a cut came to."""
    return Result(cut=cut, verdict=verdict, history="history/x.jsonl")


def test_changes_to_disks() -> None:
    """They have one side, and each place has as many disks to come back to as are asked for, but
    none that nobody dies at.
    """
    trace = [("transaction-1", "rename:durable/N"), ("transaction-1", "end_txn")]

    assert [str(cut) for cut in cuts(trace, "txn", ("before", "late"), ("kept", "wiped"))] == [
        "transaction-1.rename:durable/N.1.before",
        "transaction-1.rename:durable/N.1.before.wiped",
        "transaction-1.end_txn.1.before",
        "transaction-1.end_txn.1.before.wiped",
        "transaction-1.end_txn.1.late",
    ]


def test_both_sides_of_each_effect_by_its_number_in_the_phase() -> None:
    """What only asks has none, and what is no part of a transaction has none where only those are
    asked for.
    """
    names = [str(cut) for cut in cuts(TRACE, "txn", SIDES)]

    assert names == [
        f"{place}.{side}"
        for place in (
            "transaction-1.produce.1",
            "transaction-1.produce.2",
            "transaction-1.end_txn.1",
            "transaction-2.produce.1",
        )
        for side in ("before", "after")
    ]
    assert [str(cut) for cut in cuts(TRACE, "all", SIDES)] == [
        "start.init_producer_id.1.before",
        "start.init_producer_id.1.after",
        *names,
    ]


def test_a_depth_is_how_many_of_the_points() -> None:
    """Core is the second wave, which the others repeat; quick its last request; full is all there
    is.
    """
    trace = [
        *TRACE,
        ("transaction-2", "end_txn"),
        ("transaction-2", "rename:durable/N"),
        ("shutdown", "produce"),
    ]
    there = list(cuts(trace, "all", SIDES))

    found = {depth: [str(cut) for cut in within(depth, there)] for depth in DEPTHS}

    assert found["full"] == [str(cut) for cut in there]
    assert found["core"] == [name for name in found["full"] if name.startswith("transaction-2.")]
    assert found["quick"] == ["transaction-2.end_txn.1.before", "transaction-2.end_txn.1.after"]


def test_a_trace_is_believed_when_its_fewest_effects_came_often_enough() -> None:
    """A wave that fell into two transactions by chance is no trace to count places in; each phase
    is looked at by itself.
    """
    first = TRACE[:5]
    second = TRACE[5:]
    split = [*second, ("transaction-2", "end_txn"), *second]

    assert not is_steady([])
    assert not is_steady([first + second] * (AGREED - 1) + [first + split] * AGREED)
    assert is_steady(
        [first + second] * (AGREED - 1) + [first + split, [*first, *first[3:], *second]]
    )
    assert shortest([first + split, [*first, *first[3:], *second]]) == first + second


def test_nobody_is_late_for_who_starts() -> None:
    """What arrives late, or is sent by a zombie, is part of a wave, which a successor can drain."""
    names = [str(cut) for cut in cuts(TRACE, "all", ("late", "zombie"))]

    assert names[:2] == ["transaction-1.produce.1.late", "transaction-1.produce.1.zombie"]
    assert len(names) == 8


def test_a_second_death_in_the_recovery_from_the_first(tmp_path: Path) -> None:
    """There is one for each side of what whoever came back did, where the first was upheld; each is
    done once.
    """
    recovered = result(Verdict.UPHELD).model_copy(
        update={"recovery": ["init_producer_id", "end_txn"]}
    )
    names = [str(cut) for cut in pairs(recovered)]

    assert names[0] == "transaction-1.end_txn.1.after+recovery.init_producer_id.1.before"
    assert len(names) == 4
    assert not list(pairs(recovered.model_copy(update={"verdict": Verdict.VIOLATED})))
    record = Record(tmp_path, "plain", "ledger", "exactly_once", "txn")
    record.begin([CUT], 7)
    assert record.left([CUT], is_paired=True) == [CUT]
    record.add(recovered)
    assert record.left([CUT]) == []
    assert record.left([CUT], is_paired=True) == list(pairs(recovered))
    record.add(result(Verdict.UPHELD, next(pairs(recovered))))
    again = Record(tmp_path, "plain", "ledger", "exactly_once", "txn")
    assert [str(cut) for cut in again.left([CUT], is_paired=True)] == names[1:]


def test_what_was_done_is_not_done_again(tmp_path: Path) -> None:
    """Seed, places and results are read back, and a line that was cut off by the end of the process
    is done anew.
    """
    first = Record(tmp_path, "plain", "ledger", "exactly_once", "txn")
    places = list(cuts(TRACE, "txn", SIDES))
    first.begin(places, 7)
    first.add(result(Verdict.UPHELD, places[0]))
    first.add(result(None, places[1]))
    with first.path.open("a") as file:
        file.write('{"cut": {"phase"')

    again = Record(tmp_path, "plain", "ledger", "exactly_once", "txn")

    assert (again.seed, again.cuts) == (7, places)
    assert {cut: found.verdict for cut, found in again.results.items()} == {
        places[0]: Verdict.UPHELD,
        places[1]: None,
    }
    again.add(result(Verdict.UPHELD, places[1]))
    assert Record(tmp_path, "plain", "ledger", "exactly_once", "txn").results == again.results


@pytest.mark.parametrize("text", ["", "x\n", "[]\n", "{}\n", '{"cuts": [{}], "seed": 1}\n'])
def test_a_folder_with_something_else(tmp_path: Path, text: str) -> None:
    """It is refused in a sentence, and left as it is."""
    (tmp_path / "sweep.jsonl").write_text(text)

    with pytest.raises(UsageProblem, match="is no record of a sweep"):
        Record(tmp_path, "plain", "ledger", "exactly_once", "txn")
    assert (tmp_path / "sweep.jsonl").read_text() == text


def test_a_folder_of_another_sweep(tmp_path: Path) -> None:
    """It says of which."""
    Record(tmp_path, "plain", "ledger", "exactly_once", "txn").begin([CUT], 7)

    with pytest.raises(UsageProblem, match=r"another sweep .design plain, program ledger"):
        Record(tmp_path, "spark", "ledger", "exactly_once", "txn")


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ([Verdict.UPHELD, Verdict.UPHELD], 0),
        ([Verdict.UPHELD, None], 2),
        ([Verdict.UPHELD, Verdict.INCONCLUSIVE], 2),
        ([None, Verdict.HARNESS_ERROR], 3),
        ([Verdict.HARNESS_ERROR, Verdict.VIOLATED], 1),
        ([], 5),
    ],
)
def test_how_it_ends(verdicts: list[Verdict | None], code: int) -> None:
    """A place that was missed proves nothing, and is no success."""
    assert exit_code([result(verdict) for verdict in verdicts]) == code


def test_what_is_shown() -> None:
    """The table counts what was met, and a card has the command that meets it again."""
    found = result(Verdict.VIOLATED).model_copy(
        update={"anomalies": [Anomaly(name="lost", text="ada is gone")]}
    )

    said = card(found, "upheld sweep --design x", 7)

    assert table([found, result(None)]).caption == "2 points, 1 hit, 1 missed"
    assert said.splitlines()[0] == "VIOLATED  transaction-1.end_txn.1.after"
    assert "lost: ada is gone" in said
    assert said.endswith("upheld sweep --design x --point transaction-1.end_txn.1.after --seed 7")


def test_who_is_wrong_with_no_fault_has_no_place_to_name() -> None:
    """The command is that of the whole sweep."""
    found = result(Verdict.VIOLATED, CUT.model_copy(update={"phase": "no fault"}))

    assert card(found, "upheld sweep --design x", 7).endswith("upheld sweep --design x --seed 7")


def test_a_record_is_whole_lines(tmp_path: Path) -> None:
    """Each result is a line of JSON from the moment on in which it is there."""
    record = Record(tmp_path, "plain", "ledger", "exactly_once", "all")
    record.begin([CUT], 1)
    record.add(result(Verdict.UPHELD))

    assert [json.loads(line)["verdict"] for line in record.path.read_text().splitlines()[1:]] == [
        "upheld"
    ]


def begun(folder: Path) -> Record:
    """A record of three places, of which the first is known to be upheld."""
    record = Record(folder, "plain", "ledger", "exactly_once", "txn")
    record.begin(list(cuts(TRACE, "txn", SIDES))[:3], 7)
    record.add(result(Verdict.UPHELD, record.cuts[0]))
    return record


def swept(
    record: Record, monkeypatch: pytest.MonkeyPatch, *points: str, golden: Verdict
) -> list[Result]:
    """Sweep with lives that are not lived: each place is upheld, and a life with no fault comes to
    `golden`.
    """
    lived = result(golden, CUT.model_copy(update={"phase": "no fault"}))
    monkeypatch.setattr(
        Sweep, "golden", lambda *_: (TRACE if golden is Verdict.UPHELD else [], lived)
    )
    monkeypatch.setattr(Sweep, "die", lambda _, cut, __: result(Verdict.UPHELD, cut))
    nothing: Any = SimpleNamespace(seed=7)
    return run(nothing, nothing, record, Progress(Console(quiet=True)), points=points)


def test_a_sweep_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left of a record is done, in its order; what was done stays as it is written."""
    record = begun(tmp_path)
    before = record.path.read_text()

    found = swept(record, monkeypatch, golden=Verdict.HARNESS_ERROR)  # nobody counts places again

    assert [each.cut for each in found] == record.cuts
    assert record.path.read_text().startswith(before)
    assert record.path.read_text().count("\n") == 1 + len(record.cuts)


def test_a_place_that_is_mistyped_is_told_and_leaves_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nearest name is in the sentence; a name that is right is not met either."""
    record = begun(tmp_path)
    before = record.path.read_text()
    right = str(record.cuts[1])

    with pytest.raises(UsageProblem, match=f"Did you mean {right}\\?"):
        swept(record, monkeypatch, right, right.replace("after", "afer"), golden=Verdict.UPHELD)

    assert record.path.read_text() == before


def test_a_design_that_is_wrong_with_no_fault_is_not_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is violated as a whole, and there is nothing to go on with."""
    record = Record(tmp_path, "plain", "ledger", "exactly_once", "txn")

    (found,) = swept(record, monkeypatch, golden=Verdict.VIOLATED)

    assert exit_code([found]) == 1
    assert card(found, "upheld sweep", 7).startswith("VIOLATED  no fault")
    assert not record.path.exists()


def test_a_sweep_begins_with_the_places_of_a_life_without_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names with a * choose among them."""
    record = Record(tmp_path, "plain", "ledger", "exactly_once", "txn")

    found = swept(record, monkeypatch, "transaction-1.end_txn.*", golden=Verdict.UPHELD)

    assert [str(each.cut) for each in found] == [
        "transaction-1.end_txn.1.before",
        "transaction-1.end_txn.1.after",
    ]
    assert record.cuts == list(cuts(TRACE, "txn", SIDES))
