"""The oracle `itself` is counted beside the models of programs."""

import subprocess
from pathlib import Path

import itself
import pytest
from itself import (
    Cell,
    Kill,
    asked_of_applications,
    judge,
    known,
    lines,
    sample,
    save,
    table,
    verdicts_in,
)

from upheld.report import RowResult
from upheld.spec import kills
from upheld.verdicts import Verdict


def line(name: str, verdict: Verdict) -> str:
    """Return the line of a report on a row of design d."""
    row = RowResult(design="d", id=name, guarantee="G1", name="n", verdict=verdict, seconds=1)
    return row.model_dump_json()


def test_the_kills_of_models_are_known() -> None:
    """Every kind of fault has kills in both shapes, but for torn outputs of a relay."""
    found = {(kill.shape, kill.kind) for kill in known()}

    assert found >= {("fold", kind) for kind in ("loss", "duplicate", "torn", "not restored")} | {
        ("map", kind) for kind in ("loss", "duplicate", "order")
    }


def test_what_is_caught_is_counted_by_shape_and_kind() -> None:
    """A row that cannot be judged is not caught; one that was not judged is left out."""
    kills = [Kill("d", row, "map", "loss") for row in "abcd"] + [Kill("d", "e", "fold", "torn")]
    verdicts = {
        ("d", "a"): Verdict.VIOLATED,
        ("d", "b"): Verdict.UPHELD,
        ("d", "c"): Verdict.UNSUPPORTED,
        ("d", "e"): Verdict.VIOLATED,
    }

    assert table(kills, verdicts) == {
        ("fold", "torn"): Cell(1, 1, 0),
        ("map", "loss"): Cell(3, 1, 1),
    }


def test_a_sample_is_the_same_each_time_and_holds_the_smaller_ones() -> None:
    """It is bounded for each shape and kind, whatever the order of the kills."""
    kills = [Kill("d", row, "map", kind) for row in "abcdefgh" for kind in ("loss", "torn")]

    found = sample(kills, 3)

    assert len(found) == 6
    assert found == sample(reversed(kills), 3)
    assert set(sample(kills, 2)) < set(found)
    assert {kill.kind for kill in sample(kills, 1)} == {"loss", "torn"}


def test_what_has_a_verdict_is_not_judged_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that was cut short goes on with the other rows."""
    asked = list[str]()
    monkeypatch.setattr(itself, "verdicts_in", lambda _: {("d", "a"): Verdict.UPHELD})
    monkeypatch.setattr(
        subprocess,
        "run",
        lambda *_, **__: asked.append((tmp_path / "0.rows").read_text()),
    )

    judge([Kill("d", row, "map", "loss") for row in "ab"], tmp_path, 1)

    assert asked == ["d b\n"]


def test_the_table_shows_the_share_of_what_models_catch() -> None:
    """Rows that cannot be judged have a column of their own."""
    shown = lines({("map", "loss"): Cell(4, 3, 1)})

    assert shown.splitlines()[2] == "| map | loss | 4 | 3 | 75% | 1 |"


def test_a_report_that_was_cut_short_has_verdicts(tmp_path: Path) -> None:
    """Its last line may be half written, and a summary is missing."""
    (tmp_path / "0" / "lane-1").mkdir(parents=True)
    row = line("a", Verdict.VIOLATED)
    (tmp_path / "0" / "lane-1" / "report.jsonl").write_text(f"{row}\n{row[:20]}")

    assert verdicts_in(tmp_path) == {("d", "a"): Verdict.VIOLATED}


def test_verdicts_are_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have the form of the kill matrix, with the rows of kills alone."""
    monkeypatch.setattr(itself, "BY_ITSELF", tmp_path / "kills.json")
    (tmp_path / "0").mkdir()
    rows = [line("a", Verdict.VIOLATED), line("b", Verdict.UPHELD), line("c", Verdict.UPHELD)]
    (tmp_path / "0" / "report.jsonl").write_text("\n".join([*rows, ""]))

    save([Kill("d", row, "map", "loss") for row in "ab"], tmp_path)

    assert kills.load(tmp_path / "kills.json").designs["d"].rows() == {"a", "b"}


def test_rows_of_programs_alone_are_left_out() -> None:
    """An application has no relay before it, whatever a model catches there."""
    every = list(known())

    left = list(asked_of_applications(every))

    assert any(kill.row.startswith("G7.relay") for kill in every)
    assert left
    assert not any(kill.row.startswith("G7.relay") for kill in left)
