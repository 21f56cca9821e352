"""The sweep where no design runs: its crash points, its journal and its end."""

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from upheld.errors import UsageProblem
from upheld.protocol.manifest import load
from upheld.spec.depths import DEPTHS
from upheld.sweep.answers import Asked
from upheld.sweep.journal import Journal, Plan
from upheld.sweep.life import CLAIMS, Subject
from upheld.sweep.points import (
    AGREED,
    SIDES,
    CrashPoint,
    Result,
    crash_points,
    is_steady,
    pairs,
    shortest,
    within,
)
from upheld.sweep.report import card, ending, exit_code, show, table
from upheld.sweep.run import Choice, Sweep, run
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
POINT = CrashPoint(phase="transaction-1", api="end_txn", number=1, side="after")
PLAN = Plan("plain", "ledger", "exactly_once", "txn")


def result(verdict: Verdict | None, point: CrashPoint = POINT) -> Result:
    """Return the result of a crash point."""
    return Result(point=point, verdict=verdict, history="history/x.jsonl")


def test_changes_to_disks() -> None:
    """A change to a disk has one side.

    Each point has as many disks to come back to as are asked for, and a point without a death has
    none.
    """
    trace = [("transaction-1", "rename:durable/N"), ("transaction-1", "end_txn")]

    assert [
        str(point) for point in crash_points(trace, "txn", ("before", "late"), ("kept", "wiped"))
    ] == [
        "transaction-1.rename:durable/N.1.before",
        "transaction-1.rename:durable/N.1.before.wiped",
        "transaction-1.end_txn.1.before",
        "transaction-1.end_txn.1.before.wiped",
        "transaction-1.end_txn.1.late",
    ]


def test_both_sides_of_each_effect_by_its_number_in_the_phase() -> None:
    """A request without an effect has no crash point.

    If only transactions are asked for, an effect outside of them has none either.
    """
    names = [str(point) for point in crash_points(TRACE, "txn", SIDES)]

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
    assert [str(point) for point in crash_points(TRACE, "all", SIDES)] == [
        "start.init_producer_id.1.before",
        "start.init_producer_id.1.after",
        *names,
    ]


def test_a_depth_is_how_many_of_the_points() -> None:
    """Core is the second wave, which the others repeat; quick is its last request.

    Full is all points.
    """
    trace = [
        *TRACE,
        ("transaction-2", "end_txn"),
        ("transaction-2", "rename:durable/N"),
        ("shutdown", "produce"),
    ]
    there = list(crash_points(trace, "all", SIDES))

    found = {depth: [str(point) for point in within(depth, there)] for depth in DEPTHS}

    assert found["full"] == [str(point) for point in there]
    assert found["core"] == [name for name in found["full"] if name.startswith("transaction-2.")]
    assert found["quick"] == ["transaction-2.end_txn.1.before", "transaction-2.end_txn.1.after"]


def test_a_trace_is_believed_when_its_fewest_effects_came_often_enough() -> None:
    """A wave that fell into two transactions by chance is no trace to count in.

    Each phase is looked at by itself.
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
    """A late request and one of a zombie are part of a wave.

    A successor can drain a wave.
    """
    names = [str(point) for point in crash_points(TRACE, "all", ("late", "zombie"))]

    assert names[:2] == ["transaction-1.produce.1.late", "transaction-1.produce.1.zombie"]
    assert len(names) == 8


def test_a_second_death_in_the_recovery_from_the_first(tmp_path: Path) -> None:
    """Each side of an effect in the recovery is a point of a second death.

    The first death has to be upheld, and each pair is judged once.
    """
    recovered = result(Verdict.UPHELD).model_copy(
        update={"recovery": ["init_producer_id", "end_txn"]}
    )
    names = [str(point) for point in pairs(recovered)]

    assert names[0] == "transaction-1.end_txn.1.after+recovery.init_producer_id.1.before"
    assert len(names) == 4
    assert not list(pairs(recovered.model_copy(update={"verdict": Verdict.VIOLATED})))
    journal = Journal(tmp_path, PLAN)
    journal.begin([POINT], 7)
    assert journal.remaining([POINT], is_paired=True) == [POINT]
    journal.add(recovered)
    assert journal.remaining([POINT]) == []
    assert journal.remaining([POINT], is_paired=True) == list(pairs(recovered))
    journal.add(result(Verdict.UPHELD, next(pairs(recovered))))
    again = Journal(tmp_path, PLAN)
    assert [str(point) for point in again.remaining([POINT], is_paired=True)] == names[1:]


def test_what_was_done_is_not_done_again(tmp_path: Path) -> None:
    """Seed, points and results are read back.

    A line that the end of the process cut off is judged again.
    """
    first = Journal(tmp_path, PLAN)
    places = list(crash_points(TRACE, "txn", SIDES))
    first.begin(places, 7)
    first.add(result(Verdict.UPHELD, places[0]))
    first.add(result(None, places[1]))
    with first.path.open("a") as file:
        file.write('{"cut": {"phase"')

    again = Journal(tmp_path, PLAN)

    assert (again.seed, again.points) == (7, places)
    assert {point: found.verdict for point, found in again.results.items()} == {
        places[0]: Verdict.UPHELD,
        places[1]: None,
    }
    again.add(result(Verdict.UPHELD, places[1]))
    assert Journal(tmp_path, PLAN).results == again.results


@pytest.mark.parametrize("text", ["", "x\n", "[]\n", "{}\n", '{"cuts": [{}], "seed": 1}\n'])
def test_a_folder_with_something_else(tmp_path: Path, text: str) -> None:
    """A file that is no journal is refused in a sentence, and left as it is."""
    (tmp_path / "sweep.jsonl").write_text(text)

    with pytest.raises(UsageProblem, match="is no record of a sweep"):
        Journal(tmp_path, PLAN)
    assert (tmp_path / "sweep.jsonl").read_text() == text


def test_a_folder_of_another_sweep(tmp_path: Path) -> None:
    """The sentence says to which sweep the folder belongs."""
    Journal(tmp_path, PLAN).begin([POINT], 7)

    with pytest.raises(UsageProblem, match=r"another sweep .design was 'plain' and is 'spark'\)"):
        Journal(tmp_path, replace(PLAN, design="spark"))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"version": "2"}, "version was '1' and is '2'"),
        ({"manifest": "cd"}, "manifest was 'ab' and is 'cd'"),
        ({"time_scale": 2.0}, "time_scale was 1.0 and is 2.0"),
        ({"mode": "at_least_once"}, "mode was 'exactly_once' and is 'at_least_once'"),
        ({"scope": "all"}, "points was 'txn' and is 'all'"),
        ({"disks": ("kept",)}, "disk was [] and is ['kept']"),
        ({"sides": ("before",)}, "sides was ['before', 'after'] and is ['before']"),
        (
            {"program": "relay", "version": "2"},
            "version was '1' and is '2'; program was 'ledger' and is 'relay'",
        ),
    ],
)
def test_results_of_another_plan_are_none_of_this(
    tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    """Each difference is named, and the file stays as it is."""
    plan = replace(PLAN, version="1", manifest="ab")
    journal = Journal(tmp_path, plan)
    journal.begin([POINT], 7)
    journal.add(result(Verdict.UPHELD))
    before = journal.path.read_bytes()

    with pytest.raises(UsageProblem, match=re.escape(says)):
        Journal(tmp_path, replace(plan, **change))
    assert journal.path.read_bytes() == before


def test_results_of_another_version_seed_or_broker_are_none_of_this(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker counts as soon as there is a result on it."""
    journal = Journal(tmp_path, PLAN)
    journal.begin([POINT], 7)
    journal.go_on("embedded 4.3.1")
    journal.add(result(Verdict.UPHELD))

    assert Journal(tmp_path, PLAN, 7).results == Journal(tmp_path, PLAN).results
    with pytest.raises(UsageProblem, match="seed was 7 and is 8"):
        Journal(tmp_path, PLAN, 8)
    Journal(tmp_path, PLAN).go_on("embedded 4.3.1")
    with pytest.raises(UsageProblem, match=r"broker was 'embedded 4.3.1' and is 'external x'"):
        Journal(tmp_path, PLAN).go_on("external x")
    monkeypatch.setattr("upheld.__version__", "0.0.9")
    with pytest.raises(UsageProblem, match=r"upheld was '.*' and is '0.0.9'"):
        Journal(tmp_path, PLAN)


def test_a_changed_manifest_makes_another_plan(tmp_path: Path) -> None:
    """All that a manifest says is in the digest of the plan."""
    text = 'name = "mine"\nversion = "1"\ncommand = ["{python}", "-c", "pass"]\n'
    text += 'programs = ["relay"]\nmodes = ["exactly_once"]\n'
    plans = set()
    for added in ("", "local_state = false\n", "[environment]\nA = 'b'\n"):
        (tmp_path / "design.toml").write_text(text + added)
        plans.add(Plan.of(load(str(tmp_path)), "relay", "exactly_once", "txn"))

    assert len(plans) == 3


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
    """A point that was missed proves nothing, and is no success."""
    assert exit_code([result(verdict) for verdict in verdicts]) == code


def test_what_is_shown() -> None:
    """The table counts the points that were hit.

    A card has the command that hits the point again.
    """
    found = result(Verdict.VIOLATED).model_copy(
        update={"anomalies": [Anomaly(name="lost", text="ada is gone")]}
    )

    said = card(found, "upheld sweep --design x", 7)

    shown = table([found, result(None)])
    assert [list(column.cells) for column in shown.columns] == [
        ["transaction-1"],
        ["end_txn"],
        ["2"],
        ["1"],
        ["1"],
    ]
    assert said.splitlines()[0] == "VIOLATED  transaction-1.end_txn.1.after"
    assert "lost: ada is gone" in said
    assert said.endswith("upheld sweep --design x --point transaction-1.end_txn.1.after --seed 7")


def test_the_last_line_counts_the_points() -> None:
    """It names those that were not hit, up to ten of them."""
    missed = [result(None, POINT.model_copy(update={"number": number})) for number in range(1, 13)]
    met = [result(Verdict.UPHELD), result(Verdict.VIOLATED), result(Verdict.UPHELD)]

    assert ending(met) == "crash points 3 of 3 hit, 2 upheld"
    assert ending([*met, missed[0]]) == (
        "crash points 3 of 4 hit, 2 upheld; not hit: transaction-1.end_txn.1.after"
    )
    assert ending([*met, *missed]).endswith(", transaction-1.end_txn.10.after and 2 more")
    nothing = result(Verdict.VIOLATED, POINT.model_copy(update={"phase": "no fault"}))
    assert ending([nothing]).startswith("no crash points")


def test_who_is_wrong_with_no_fault_has_no_place_to_name() -> None:
    """The command of a life without a fault is that of the whole sweep."""
    found = result(Verdict.VIOLATED, POINT.model_copy(update={"phase": "no fault"}))

    assert card(found, "upheld sweep --design x", 7).endswith("upheld sweep --design x --seed 7")


@pytest.mark.parametrize(
    ("verdict", "lines"),
    [
        (
            Verdict.VIOLATED,
            [f"[1/1] violated {POINT} 0.0 s", "  anomaly   lost: ada is gone"],
        ),
        (Verdict.UPHELD, [f"[1/1] upheld {POINT} 0.0 s"]),
    ],
)
def test_why_a_point_is_violated_is_said_at_once(verdict: Verdict, lines: list[str]) -> None:
    """A sweep may take many minutes more, and the card comes at its end."""
    anomalies = [Anomaly(name="lost", text=f"{who} is gone") for who in ("ada", "bob")]
    found = result(verdict).model_copy(
        update={"anomalies": anomalies if verdict is Verdict.VIOLATED else []}
    )
    said = Console(record=True, file=io.StringIO(), width=100)

    with Progress(said) as progress:
        progress.begin(1, lambda *_: 0.0)
        show(found, progress)

    assert said.export_text().splitlines() == lines


def test_a_record_is_whole_lines(tmp_path: Path) -> None:
    """Each result is a line of JSON as soon as it is known."""
    journal = Journal(tmp_path, replace(PLAN, scope="all"))
    journal.begin([POINT], 1)
    journal.add(result(Verdict.UPHELD))

    assert [json.loads(line)["verdict"] for line in journal.path.read_text().splitlines()[1:]] == [
        "upheld"
    ]


def begun(folder: Path) -> Journal:
    """Return a journal of three points, of which the first is known to be upheld."""
    journal = Journal(folder, PLAN)
    journal.begin(list(crash_points(TRACE, "txn", SIDES))[:3], 7)
    journal.add(result(Verdict.UPHELD, journal.points[0]))
    return journal


def swept(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, *points: str, golden: Verdict
) -> list[Result]:
    """Sweep with lives that are not lived.

    Each point is upheld, and a life with no fault comes to `golden`.
    """
    lived = result(golden, POINT.model_copy(update={"phase": "no fault"}))
    monkeypatch.setattr(
        Sweep, "golden", lambda *_: (TRACE if golden is Verdict.UPHELD else [], lived)
    )
    monkeypatch.setattr(Sweep, "crash", lambda _, point, __: result(Verdict.UPHELD, point))
    nothing: Any = SimpleNamespace(seed=7, application=None)
    return run(nothing, nothing, journal, Progress(Console(quiet=True)), Choice(points))


def test_a_sweep_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The points that a journal has left are judged in order.

    Its earlier results stay as they are written.
    """
    journal = begun(tmp_path)
    before = journal.path.read_text()

    found = swept(journal, monkeypatch, golden=Verdict.HARNESS_ERROR)  # nobody counts places again

    assert [each.point for each in found] == journal.points
    assert journal.path.read_text().startswith(before)
    assert journal.path.read_text().count("\n") == 1 + len(journal.points)


def test_a_place_that_is_mistyped_is_told_and_leaves_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence has the nearest name, and no other point is judged."""
    journal = begun(tmp_path)
    before = journal.path.read_text()
    right = str(journal.points[1])

    with pytest.raises(UsageProblem, match=f"Did you mean {right}\\?"):
        swept(journal, monkeypatch, right, right.replace("after", "afer"), golden=Verdict.UPHELD)

    assert journal.path.read_text() == before


def test_a_design_that_is_wrong_with_no_fault_is_not_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is violated as a whole, and there is nothing to go on with."""
    journal = Journal(tmp_path, PLAN)

    (found,) = swept(journal, monkeypatch, golden=Verdict.VIOLATED)

    assert exit_code([found]) == 1
    assert card(found, "upheld sweep", 7).startswith("VIOLATED  no fault")
    assert not journal.path.exists()


def test_a_sweep_begins_with_the_places_of_a_life_without_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names with a * choose among them."""
    journal = Journal(tmp_path, PLAN)

    found = swept(journal, monkeypatch, "transaction-1.end_txn.*", golden=Verdict.UPHELD)

    assert [str(each.point) for each in found] == [
        "transaction-1.end_txn.1.before",
        "transaction-1.end_txn.1.after",
    ]
    assert journal.points == list(crash_points(TRACE, "txn", SIDES))


class Lived:
    """A life that ends as it is told to, and is written down."""

    def __init__(self, subject: Subject, name: str, *_: object) -> None:
        self.subject = subject
        self.name = name
        self.trial = SimpleNamespace(history=None)
        self.trace = TRACE
        self.commits_markers = False

    def feed_all(self) -> None:
        """Stand for the waves that an application is asked about."""

    def result(self, point: CrashPoint, goes: Any = None) -> Result:
        """Write down what was lived, and with which claims."""
        said = [*self.subject.claims, *(["asks"] if goes else [])]
        LIVED.append((self.name, said, self.subject.commits_markers))
        return result(VERDICTS.get(self.name, Verdict.UPHELD), point)


LIVED = list[tuple[str, list[str], bool]]()
VERDICTS = dict[str, Verdict]()


@pytest.fixture
def lives(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let an application live on paper; its answers allow one claim."""
    LIVED.clear()
    VERDICTS.clear()
    monkeypatch.setattr("upheld.sweep.run.Life", Lived)
    monkeypatch.setattr(
        "upheld.sweep.run.asked",
        lambda subject, *_: Asked(replace(subject, claims={"relation": "holds"}), "asked"),
    )
    application: Any = SimpleNamespace(seed=7, application=SimpleNamespace(oracle="itself"))
    return application


def test_an_application_is_asked_once_and_first(lives: Any, tmp_path: Path) -> None:
    """Its answers say what each life claims; nobody waits for markers in vain."""
    journal = Journal(tmp_path, PLAN)

    found = run(lives, lives, journal, Progress(Console(quiet=True)), Choice())

    names = [name for name, *_ in LIVED]
    assert names == ["answers", *["golden"] * AGREED, *(str(each.point) for each in found)]
    assert LIVED[0] == ("answers", [*CLAIMS, "asks"], True)
    assert LIVED[1] == ("golden", ["relation"], True)
    assert all(life[1:] == (["relation"], False) for life in LIVED[1 + AGREED :])


def test_a_sweep_that_goes_on_asks_again(lives: Any, tmp_path: Path) -> None:
    """Its broker is another one; nobody counts crash points again."""
    journal = begun(tmp_path)

    run(lives, lives, journal, Progress(Console(quiet=True)), Choice(depth="full"))

    assert [name for name, *_ in LIVED] == ["answers", *map(str, journal.points[1:])]


def test_an_application_with_a_model_is_not_asked(lives: Any, tmp_path: Path) -> None:
    """Its model says what is right."""
    lives.application.oracle = "orders.py:ORDERS"

    run(lives, lives, Journal(tmp_path, PLAN), Progress(Console(quiet=True)), Choice())

    assert LIVED[0] == ("golden", [*CLAIMS], True)


def test_an_application_without_answers_is_not_killed(lives: Any, tmp_path: Path) -> None:
    """That is the one result, and what was there before stays."""
    VERDICTS["answers"] = Verdict.HARNESS_ERROR
    journal = begun(tmp_path)
    before = journal.path.read_text()

    (found,) = run(lives, lives, journal, Progress(Console(quiet=True)), Choice())

    assert (found.verdict, found.point.phase) == (Verdict.HARNESS_ERROR, "no fault")
    assert [name for name, *_ in LIVED] == ["answers"]
    assert journal.path.read_text() == before
