"""Each lane meets a share of the crash points, and the sweep has all results."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from upheld.errors import MachineProblem
from upheld.sweep.journal import Journal, Plan
from upheld.sweep.lanes import LOG, SideBySide
from upheld.sweep.points import CrashPoint
from upheld.ui.progress import Progress
from upheld.verdicts import Verdict

PLAN = Plan("plain", "ledger", "exactly_once", "txn")
POINTS = [
    CrashPoint(phase="transaction-1", api="produce", number=number, side="before")
    for number in range(1, 6)
]
# Meets the crash points of the record in its folder, until one of them ends it.
MEETS = """
import json, sys, time
from pathlib import Path
path = Path(sys.argv[sys.argv.index("--out") + 1], "sweep.jsonl")
for point in json.loads(path.read_text().splitlines()[0])["cuts"]:
    if point["number"] == {last}:
        print("no room", file=sys.stderr)
        sys.exit(3)
    if point["number"] == {stays}:
        time.sleep(60)
    with path.open("a") as record:
        result = {{"cut": point, "verdict": "upheld", "history": "history/x.jsonl"}}
        print(json.dumps(result), file=record)
"""


def lanes(*, last: int = 0, stays: int = 0) -> SideBySide:
    """Return two lanes, of which one ends or stays at a crash point."""
    run: Any = SimpleNamespace(environment={})
    script = MEETS.format(last=last, stays=stays)
    return SideBySide((sys.executable, "-c", script), 2, run)


def journal(folder: Path) -> Journal:
    """Return the record of a sweep that has met nothing yet."""
    found = Journal(folder, PLAN)
    found.broker = "embedded 4"
    found.begin(POINTS, seed=7)
    return found


def test_the_whole_sweep_has_all_results(tmp_path: Path) -> None:
    """Each says where its history is, and the record can be gone on from."""
    with Progress(Console(quiet=True)) as progress:
        lanes().meet(journal(tmp_path), POINTS, progress)

    found = Journal(tmp_path, PLAN).results
    assert {point: result.verdict for point, result in found.items()} == dict.fromkeys(
        POINTS, Verdict.UPHELD
    )
    assert [found[point].history for point in POINTS] == [
        f"lane-{number}/history/x.jsonl" for number in (1, 2, 1, 2, 1)
    ]


def test_a_lane_that_ends_early_is_told_and_nothing_is_lost(tmp_path: Path) -> None:
    """The message says where it ended, and its log says why."""
    whole = journal(tmp_path)

    with (
        Progress(Console(quiet=True)) as progress,
        pytest.raises(MachineProblem, match=r"Lane 1 ended with exit code 3 before .*produce\.3"),
    ):
        lanes(last=3).meet(whole, POINTS, progress)

    assert {point.number for point in Journal(tmp_path, PLAN).results} == {1, 2, 4}
    assert (tmp_path / "lane-1" / LOG).read_text() == "no room\n"


def test_an_interruption_ends_the_lanes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The results that are there by then are kept."""
    whole = journal(tmp_path)
    progress = Progress(Console(quiet=True))

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(progress, "finished", interrupted)
    with progress, pytest.raises(KeyboardInterrupt):
        lanes(stays=3).meet(whole, POINTS, progress)

    assert Journal(tmp_path, PLAN).results.keys() >= {POINTS[0]}
