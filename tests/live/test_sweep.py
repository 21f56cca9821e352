"""The sweep on a real broker.

A right design upholds a crash point that a wrong design does not.
"""

import json
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from upheld.cli import parser
from upheld.injectors.disk.watcher import Disk
from upheld.protocol.manifest import load
from upheld.sweep.journal import Journal, Plan
from upheld.sweep.points import LEFT, SIDES, CrashPoint, Side

UPHELD = str(Path(sys.executable).with_name("upheld"))
DEADLINE_S = 240.0
SEED = 7
CHECKOUT = Path(__file__).parents[2]


class Swept(NamedTuple):
    """The exit code of a sweep, its output and its journal."""

    code: int
    said: str
    lines: list[dict[str, Any]]


def swept(out: Path, *options: str) -> Swept:
    """Sweep a ledger, exactly_once."""
    command = [UPHELD, "sweep", "--broker", "embedded", "--out", str(out), *options]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    journal = out / "sweep.jsonl"
    assert journal.exists(), ran.stdout + ran.stderr
    lines = journal.read_text().splitlines()
    return Swept(ran.returncode, ran.stdout + ran.stderr, [json.loads(line) for line in lines])


def test_a_right_design_dies_again_on_the_way_back(tmp_path: Path) -> None:
    """Each point is hit at its named request, with the evidence.

    The first death finds the second point, which is hit alone.
    """
    pair = "transaction-2.end_txn.1.before+recovery.init_producer_id.1.after"
    code, said, (head, first, second) = swept(tmp_path, "--design", "plain", "--point", pair)

    assert code == 0, said
    assert {cut["api"] for cut in head["cuts"]} >= {"produce", "txn_offset_commit", "end_txn"}
    assert (first["verdict"], first["evidence"]["api"]) == ("upheld", "end_txn")
    assert first["evidence"]["answered"] is False
    assert "end_txn" in first["recovery"]
    assert second["cut"]["then"]["api"] == "init_producer_id"
    assert (second["verdict"], second["evidence"]["answered"]) == ("upheld", True)


def test_a_wrong_design_is_caught_and_the_card_names_all_that_the_place_depends_on(
    tmp_path: Path,
) -> None:
    """A zombie goes on where its successor took another id.

    The command on the card asks for the same point again. The journal was begun by hand, so that no
    design lives through the workload only to count points.
    """
    point = CrashPoint(phase="transaction-2", api="txn_offset_commit", number=1, side="zombie")
    sides = (*SIDES, "zombie")
    design = "broken/takes_a_new_id_on_every_start"
    plan = replace(Plan.of(load(design), "ledger", "exactly_once", "all"), sides=sides)
    Journal(tmp_path, plan).begin([point], SEED)
    asked = [
        "--design",
        design,
        "--program",
        "ledger",
        "--mode",
        "exactly_once",
        "--points",
        "all",
        "--zombie",
        "--point",
        str(point),
    ]

    code, said, (_, result) = swept(tmp_path, *asked)

    assert code == 1, said
    assert (result["verdict"], result["evidence"]["api"]) == ("violated", "txn_offset_commit")
    again = next(shlex.split(line)[2:] for line in said.splitlines() if line.startswith("  again "))
    asked = ["sweep", "--broker", "embedded", *asked, "--seed", str(SEED)]
    known = parser()
    assert vars(known.parse_args(again)) == vars(known.parse_args(asked))


@pytest.mark.skipif(bool(Disk.lacking()), reason=f"nobody can be watched here: {Disk.lacking()}")
def test_a_disk_comes_back_as_it_was(tmp_path: Path) -> None:
    """A kill at a change to a disk is harmless while the disk is kept.

    A design that never synced is violated on a disk that is set back.
    """
    left = LEFT[:2]
    points = [
        CrashPoint(phase="transaction-3", api="close:a/N", number=1, side="before", left=each)
        for each in left
    ]
    design = "broken/syncs_the_first_alone"
    plan = replace(Plan.of(load(design), "ledger", "exactly_once", "txn"), disks=left)
    Journal(tmp_path, plan).begin(points, SEED)
    wrong = ("--design", design, "--disk", "kept,rolled-back")

    code, said, (_, kept, back) = swept(tmp_path, *wrong, "--point", "transaction-3.close:a/N.1.*")

    assert code == 1, said
    assert (kept["cut"]["left"], kept["verdict"]) == ("kept", "upheld")
    assert (back["cut"]["left"], back["verdict"]) == ("rolled-back", "violated")
    assert back["evidence"]["file"].startswith("a/")
    assert f"--disk kept,rolled-back --point {points[1]} --seed {SEED}" in said


@pytest.mark.parametrize(
    ("folder", "api", "side"),
    [
        ("examples/orders", "end_txn", "before"),
        ("tests/support/applications/commits", "offset_commit", "after"),
    ],
    ids=["transactions", "commits"],
)
def test_an_application_without_an_adapter_is_judged_by_itself(
    tmp_path: Path, folder: str, api: str, side: Side
) -> None:
    """Its own runs without a fault say what is right; nobody writes a model.

    The last line counts the crash points. The journal was begun by hand, as above.
    """
    design = load(str(CHECKOUT / folder))
    point = CrashPoint(phase="transaction-2", api=api, number=1, side=side)
    Journal(tmp_path, Plan.of(design, "ledger", design.modes[0], "all")).begin([point], SEED)

    code, said, (_, result) = swept(tmp_path, "--design", str(design.folder))

    assert (code, result["verdict"]) == (0, "upheld"), said
    assert result["evidence"]["api"] == api
    assert f"{design.name} is its own oracle" in said
    assert "crash points 1 of 1 hit, 1 upheld" in said.splitlines()


def test_lanes_meet_crash_points_side_by_side(tmp_path: Path) -> None:
    """The record of the sweep has the results of both, each with its history."""
    design = load("plain")
    points = [
        CrashPoint(phase="transaction-2", api="end_txn", number=1, side=side) for side in SIDES
    ]
    Journal(tmp_path, Plan.of(design, "ledger", "exactly_once", "txn")).begin(points, SEED)

    code, said, (_, *results) = swept(tmp_path, "--design", "plain", "--lanes", "2")

    assert (code, [each["verdict"] for each in results]) == (0, ["upheld"] * 2), said
    assert {each["history"].partition("/")[0] for each in results} == {"lane-1", "lane-2"}
    assert all((tmp_path / each["history"]).exists() for each in results)
