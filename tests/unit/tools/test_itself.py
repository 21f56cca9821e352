"""The oracle `itself` is counted beside the models of programs."""

import subprocess
from pathlib import Path

import itself
import pytest
from itself import Cell, Kill, judge, known, lines, sample, table, verdicts_in

from upheld.verdicts import Verdict


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
        lambda *_, **__: asked.append((tmp_path / "rows.txt").read_text()),
    )

    judge([Kill("d", row, "map", "loss") for row in "ab"], tmp_path)

    assert asked == ["d b\n"]


def test_the_table_shows_the_share_of_what_models_catch() -> None:
    """Rows that cannot be judged have a column of their own."""
    shown = lines({("map", "loss"): Cell(4, 3, 1)})

    assert shown.splitlines()[2] == "| map | loss | 4 | 3 | 75% | 1 |"


def test_a_report_that_was_cut_short_has_verdicts(tmp_path: Path) -> None:
    """Its last line may be half written, and a summary is missing."""
    (tmp_path / "d" / "0").mkdir(parents=True)
    row = '{"kind": "row", "design": "d", "id": "a", "verdict": "violated"}'
    (tmp_path / "d" / "0" / "report.jsonl").write_text(f"{row}\n{row[:20]}")

    assert verdicts_in(tmp_path) == {("d", "a"): Verdict.VIOLATED}
