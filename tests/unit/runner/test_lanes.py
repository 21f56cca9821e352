"""Rows in lanes that are miniatures.

Held is which lane is asked for which row, and the end of a lane that ends by itself. No Kafka is
started.
"""

import io
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from reports import summary
from rich.console import Console

from upheld.cli import main
from upheld.errors import UsageProblem
from upheld.report import RowResult, read
from upheld.report.baseline import Baseline, worst
from upheld.runner.choice import Choice, First
from upheld.runner.lane import LanePlugin
from upheld.runner.lanes import Lane, Lanes
from upheld.spec.durations import Durations, Recorded
from upheld.spec.gherkin import ON_A_CLUSTER
from upheld.supervisor.reaper import RunScope
from upheld.verdicts import Verdict

LANE = """
import json, os, signal, sys
assert os.environ["UPHELD_LANE"]
def tell(**what): print(json.dumps(what), flush=True)
out = sys.argv[sys.argv.index("--out") + 1]
os.makedirs(out)
if "refuses" in sys.argv:
    tell(kind="problem", text="There is no such broker.", exit_code=4)
    sys.exit()
tell(kind="opened", broker="no", version="1", why="a test")
print("upheld: something boots [now] …", file=sys.stderr)
asked = []
for line in sys.stdin:
    design, row, repetition, is_alone = json.loads(line)
    if row == "G1.c" and "dies" in sys.argv:
        sys.exit(7)
    if row == "G1.c" and "is interrupted" in sys.argv:
        os.kill(os.getppid(), signal.SIGINT)
        signal.pause()
    verdict = "violated" if row == "G1.b" and "fails" in sys.argv else "upheld"
    if "disturbed" in sys.argv:
        again, other = out + "/../" + design + row, out[:-1] + "21"[int(out[-1]) - 1] + "/ended"
        if row in ("G1.b", "G1.d"):
            if is_alone != os.path.exists(again) or is_alone and not os.path.exists(other):
                sys.exit(9)  # asked again while the other lane lives
            verdict = "upheld" if row == "G1.b" and os.path.exists(again) else "inconclusive"
            open(again, "w")
    kind = "unproven" if verdict == "inconclusive" and not is_alone else "row"
    tell(kind=kind, design=design, id=row, guarantee="G1", name="x", repetition=repetition,
         verdict=verdict, seconds=1, reason="", history="history/h.jsonl")
    asked.append(row)
open(out + "/ended", "w")
"""
ROWS = ["G1.a", "G1.b", "G1.c", "G1.d"]


class Run:
    """A run of two designs with four rows each."""

    def __init__(
        self, folder: Path, sin: Any = None, on_a_cluster: str = "", **options: Any
    ) -> None:
        rows = [
            SimpleNamespace(id=row, tags={ON_A_CLUSTER} if row[3:] in on_a_cluster else set())
            for row in ROWS
        ]
        scenario = SimpleNamespace(rows=rows)
        catalogue: Any = SimpleNamespace(by_id={"G1": scenario}, guarantees={}, promises={})
        designs: Any = [
            SimpleNamespace(name=name, version="1", sin=sin, cannot=(), spec=None)
            for name in ("one", "two")
        ]
        self.out = folder
        self.said = io.StringIO()
        choice = Choice(designs, catalogue, {"one": set(ROWS), "two": set(ROWS)}, **options)
        self.lanes = Lanes(choice, folder, 7, Console(file=self.said, width=1000))

    def judge(self, how: str, count: int = 2) -> None:
        """Judge in so many miniatures."""
        with RunScope() as run:
            self.lanes.judge([sys.executable, "-c", LANE, how], count, run)


def test_every_row_is_judged_once_and_the_report_is_whole(tmp_path: Path) -> None:
    """Each row of two designs is judged once in two lanes.

    There is one summary and one file of each format. Histories are found from the folder of the
    report.
    """
    run = Run(tmp_path, repeat=2)

    run.judge("well")

    rows, summary = read(tmp_path / "report.jsonl")
    assert len(rows) == len({(row.design, row.id, row.repetition) for row in rows}) == 16
    assert (summary.exit_code, summary.partial, summary.broker, summary.seed) == (
        0,
        False,
        "no 1",
        7,
    )
    assert {row.history for row in rows} == {"history/h.jsonl"}
    assert len(list(ET.parse(tmp_path / "junit.xml").iter("testcase"))) == 16
    assert len(list(tmp_path.rglob("index.html"))) == 1
    said = run.said.getvalue().splitlines()
    assert "upheld 0.1.0, seed 7, 2 lanes, each on broker no 1 (a test)" in said
    assert said.count("upheld: something boots [now] …") == 2
    lines = [line for line in said if line.startswith("[")]
    assert [line.partition(" ")[0] for line in lines] == [
        f"[{number}/16]" for number in range(1, 17)
    ]
    assert sorted(line.partition(" ")[2] for line in lines) == sorted(
        f"upheld {design} {row} 1.0 s"
        for design in ("one", "two")
        for row in ROWS
        for _ in range(2)
    )
    assert run.lanes.time_left.seconds() == 0


def test_a_lane_keeps_to_its_design(tmp_path: Path) -> None:
    """A design boots once if there are as many designs as lanes.

    The rows that one design has left are shared at the end.
    """
    run = Run(tmp_path)
    first, second = (Lane(number, SimpleNamespace(stdin=io.StringIO())) for number in (1, 2))
    run.lanes.lanes = [first, second]

    for lane in (first, second, second, second, second, second):
        lane.ask(run.lanes.next_row(lane))

    assert first.row == ("one", "G1.a", 0)
    assert second.row == ("one", "G1.b", 0)
    assert run.lanes.waiting == [("one", "G1.c", 0), ("one", "G1.d", 0)]


def test_no_two_lanes_have_a_cluster_while_other_rows_wait(tmp_path: Path) -> None:
    """Three more brokers take half a gigabyte; at the end the rows left are shared."""
    run = Run(tmp_path, on_a_cluster="abd")
    first, second = (Lane(number, SimpleNamespace(stdin=io.StringIO())) for number in (1, 2))
    run.lanes.lanes = [first, second]
    run.lanes.waiting = [key for key in run.lanes.waiting if key.design == "one"]
    asked = []

    for lane in (first, second, first, second):
        lane.ask(run.lanes.next_row(lane))
        asked.append(lane.row and lane.row.row_id)

    assert asked == ["G1.a", "G1.c", "G1.b", "G1.d"]


def test_the_rows_that_bring_most_news_are_handed_out_first(tmp_path: Path) -> None:
    """Designs and repetitions are judged whole, one after the other.

    The cheapest row of each guarantee comes first, as in one lane.
    """
    rows = {"G1.a": 9.0, "G1.b": 2.0, "G1.c": 3.0, "G1.d": 4.0}
    durations = Durations(
        designs={"one": Recorded(rows_s=rows), "two": Recorded(rows_s={**rows, "G1.a": 1.0})}
    )
    run = Run(tmp_path, repeat=2, durations=durations)
    lane = Lane(1, SimpleNamespace(stdin=io.StringIO()))
    run.lanes.lanes = [lane]
    asked = []

    while run.lanes.waiting:
        lane.ask(run.lanes.next_row(lane))
        asked.append(lane.row)

    assert asked == run.lanes.choice.keys()
    assert [(key.design, key.row_id[3:], key.repetition) for key in asked if key] == [
        *(("one", row, repetition) for repetition in range(2) for row in "bcda"),
        *(("two", row, repetition) for repetition in range(2) for row in "abcd"),
    ]


def test_what_failed_last_time_is_handed_out_first(tmp_path: Path) -> None:
    """The first line of the run says so; each design has its own."""
    run = Run(tmp_path, first=First("last.jsonl", {"one": {"G1.c"}, "two": {"G1.d", "G1.b"}}))

    assert [key.row_id[3:] for key in run.lanes.waiting] == [*"cabd", *"bdac"]
    run.judge("well")

    (said,) = [line for line in run.said.getvalue().splitlines() if ", 2 lanes, " in line]
    assert said.endswith("(a test); first the 3 rows that failed in last.jsonl")


def test_lanes_compare_with_the_baseline_of_their_run(tmp_path: Path) -> None:
    """A row that was as bad there is excused, whichever lane judged it."""
    failed = [
        RowResult(design=name, id="G1.b", guarantee="G1", name="x", verdict="violated", seconds=1)
        for name in ("one", "two")
    ]
    run = Run(tmp_path, baseline=Baseline("last.jsonl", worst(failed), summary()))

    run.judge("fails")

    found = read(tmp_path / "report.jsonl")[1]
    assert (found.exit_code, found.baseline and found.baseline.as_bad) == (0, 2)


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    """The run says how many rows it left out, and why.

    It says which designs have no verdict on which guarantee thereby.
    """
    run = Run(tmp_path, max_seconds=1e-9)

    run.judge("well", count=1)

    assert run.lanes.left_out() == "--max-seconds: 7 of 8 rows left out; no verdict on two G1"


def test_a_lane_that_dies_ends_the_run_with_what_was_judged(tmp_path: Path) -> None:
    """The row of the dead lane is named, and no other row is begun.

    The report is partial, and the code is the machine's.
    """
    run = Run(tmp_path)

    run.judge("dies", count=1)

    rows, summary = read(tmp_path / "report.jsonl")
    assert [row.id for row in rows] == ["G1.a", "G1.b"]
    assert (summary.exit_code, summary.partial) == (3, True)
    assert run.lanes.problem == "Lane 1 ended in the middle of G1.c with exit code 7."


def test_an_interrupt_ends_the_lanes_and_keeps_what_was_judged(tmp_path: Path) -> None:
    """Ctrl-C in the middle of a row tells every lane to end.

    The report is partial.
    """
    run = Run(tmp_path)

    run.judge("is interrupted", count=1)

    rows, summary = read(tmp_path / "report.jsonl")
    assert [row.id for row in rows] == ["G1.a", "G1.b"]
    assert (summary.exit_code, summary.partial, run.lanes.interrupted) == (130, True, True)
    assert [lane.process.returncode for lane in run.lanes.lanes] == [-signal.SIGTERM]


def test_what_no_lane_can_begin_with_is_said_once_in_its_own_words(tmp_path: Path) -> None:
    """Two lanes that refuse give one sentence, and one run's exit code."""
    run = Run(tmp_path)

    run.judge("refuses")

    assert (run.lanes.summary, str(run.lanes.refused)) == (None, "There is no such broker.")
    assert isinstance(run.lanes.refused, UsageProblem)


def test_nothing_is_begun_after_a_failure_where_the_run_is_to_fail_fast(tmp_path: Path) -> None:
    """A row that another lane judges meanwhile is still reported."""
    run = Run(tmp_path, fail_fast=True)

    run.judge("fails")

    rows, summary = read(tmp_path / "report.jsonl")
    assert (summary.exit_code, summary.partial) == (1, True)
    assert 2 <= len(rows) <= 4


def test_what_proved_nothing_in_company_is_judged_again_alone(tmp_path: Path) -> None:
    """A row that is inconclusive beside others has no verdict yet.

    Judged without them it has one, inconclusive or not.
    """
    run = Run(tmp_path)

    run.judge("disturbed")

    rows, summary = read(tmp_path / "report.jsonl")
    assert {(row.design, row.id): row.verdict for row in rows} == {
        (design, row): "inconclusive" if row == "G1.d" else "upheld"
        for design in ("one", "two")
        for row in ROWS
    }
    assert len(rows) == 8
    assert summary.exit_code == 2
    assert run.said.getvalue().count("again, alone") == 4


def test_a_lane_says_of_a_row_that_proved_nothing_in_company_that_it_has_to_be_asked_again(
    tmp_path: Path,
) -> None:
    """An inconclusive row beside others has to be judged again.

    Alone it is inconclusive, and any other verdict stands beside others too.
    """
    told: list[str] = []
    line: Any = SimpleNamespace(tell=lambda kind, **_: told.append(kind))
    rig: Any = SimpleNamespace(out=tmp_path, seed=7)
    catalogue: Any = SimpleNamespace(by_id={}, guarantees={})
    gate = LanePlugin(rig, Choice([], catalogue, {}), line)
    row = {"design": "one", "id": "G1.a", "guarantee": "G1", "name": "x", "seconds": 1}

    for gate.is_alone in (False, True):
        for verdict in (Verdict.INCONCLUSIVE, Verdict.VIOLATED):
            gate.report(RowResult(verdict=verdict, **row))

    assert told == ["unproven", "row", "row", "row"]


def test_who_is_known_to_be_late_is_judged_alone_at_once(tmp_path: Path) -> None:
    """Beside others it would prove nothing; its control is judged like anybody's row."""
    run = Run(tmp_path, sin=SimpleNamespace(anomaly="late", control="G1.c"))

    run.judge("well")

    rows, _ = read(tmp_path / "report.jsonl")
    assert [row.id for row in rows][:2] == ["G1.c", "G1.c"]
    assert len({row.history.partition("/")[0] for row in rows[2:]}) == 1
    assert len(rows) == 8


def test_lanes_share_no_store(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One lane would lock a given store under the hands of the other."""
    monkeypatch.setattr("upheld.cli.run.given_stores", lambda _: {"redis": "redis://localhost"})

    assert (
        main(["run", "--design", "plain", "--lanes", "2", "--store", "redis=redis://localhost"])
        == 4
    )
    assert "leave out --lanes" in capsys.readouterr().err
