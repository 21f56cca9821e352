"""The sweep on a real broker: a right design upholds a place to die that a wrong one does not."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from streamgate.faults.disk import Disk

STREAMGATE = str(Path(sys.executable).with_name("streamgate"))
DEADLINE_S = 240.0


def swept(out: Path, *options: str) -> tuple[int, str]:
    """The exit code, and what was printed."""
    command = [STREAMGATE, "sweep", "--broker", "embedded", "--out", str(out), *options]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    return ran.returncode, ran.stdout + ran.stderr


def lines(out: Path) -> list[dict[str, Any]]:
    """What stands in the record."""
    return [json.loads(line) for line in (out / "sweep.jsonl").read_text().splitlines()]


def test_a_place_that_is_upheld_and_one_that_is_not_there(tmp_path: Path) -> None:
    """Each is met at its named request, with the evidence; the record is gone on with, and who mistypes a place is told."""
    points = ["--point", "transaction-2.end_txn.1.after", "--point", "start.init_producer_id.1.bef*"]
    code, said = swept(tmp_path, "--design", "plain", "--points", "all", *points)

    assert code == 0, said
    head, first, result = lines(tmp_path)
    assert (first["verdict"], first["evidence"]["api"]) == ("upheld", "init_producer_id")
    assert {cut["api"] for cut in head["cuts"]} >= {"produce", "txn_offset_commit", "end_txn"}
    assert result["verdict"] == "upheld"
    assert result["evidence"]["api"] == "end_txn"
    assert result["evidence"]["answered"] is True

    points = ["--point", "transaction-2.end_txn.1.after", "--point", "transaction-2.end_txn.1.afer"]
    code, said = swept(tmp_path, "--design", "plain", "--points", "all", *points)

    assert code == 4
    assert "Did you mean transaction-2.end_txn.1.after?" in said
    assert lines(tmp_path) == [head, first, result]


def test_who_dies_again_on_the_way_back(tmp_path: Path) -> None:
    """The place in its recovery is found by the first death, and met alone."""
    pair = "transaction-2.end_txn.1.before+recovery.init_producer_id.1.after"
    code, said = swept(tmp_path, "--design", "plain", "--point", pair)

    assert code == 0, said
    _, first, second = lines(tmp_path)
    assert "end_txn" in first["recovery"]
    assert second["cut"]["then"]["api"] == "init_producer_id"
    assert (second["verdict"], second["evidence"]["answered"]) == ("upheld", True)


def test_a_wrong_design_is_caught_where_it_is_wrong(tmp_path: Path) -> None:
    """Who commits before the output has lost it once the commit is done, and has no recovery to die in again."""
    wrong = ("--design", "broken/commits_before_output", "--pairs")
    code, said = swept(tmp_path, *wrong, "--point", "transaction-1.offset_commit.1.after")

    assert code == 1, said
    assert "behind-commit" in said
    assert "--point transaction-1.offset_commit.1.after --seed " in said


def test_what_is_found_is_shown_again_by_the_command_on_its_card(tmp_path: Path) -> None:
    """It names all that the place depends on."""
    asked = ("--design", "broken/takes_a_new_id_on_every_start", "--points", "all", "--zombie")
    code, said = swept(tmp_path / "first", *asked, "--point", "transaction-2.txn_offset_commit.1.zombie")

    assert code == 1, said
    again = next(line.split()[3:] for line in said.splitlines() if line.startswith("  again "))
    assert swept(tmp_path / "again", *again)[0] == 1


@pytest.mark.skipif(bool(Disk.lacking()), reason=f"nobody can be watched here: {Disk.lacking()}")
def test_whose_disk_comes_back_as_it_was(tmp_path: Path) -> None:
    """A kill at a change to its disk is harmless while that is kept, and shows who never synced where it is rolled back."""
    wrong = ("--design", "broken/syncs_the_first_alone", "--disk", "kept,rolled-back")
    code, said = swept(tmp_path, *wrong, "--point", "transaction-3.close:a/N.1.*")

    assert code == 1, said
    _, kept, back = lines(tmp_path)
    assert (kept["cut"]["left"], kept["verdict"]) == ("kept", "upheld")
    assert (back["cut"]["left"], back["verdict"]) == ("rolled-back", "violated")
    assert back["evidence"]["file"].startswith("a/")
    assert "--disk kept,rolled-back --point transaction-3.close:a/N.1.before.rolled-back --seed " in said


def test_who_is_wrong_with_no_fault_is_not_swept(tmp_path: Path) -> None:
    """It is violated, and there is nothing to go on with."""
    code, said = swept(tmp_path, "--design", "broken/makes_an_undeclared_topic")

    assert code == 1, said
    assert "VIOLATED  no fault" in said
    assert not (tmp_path / "sweep.jsonl").exists()
