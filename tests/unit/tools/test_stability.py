"""Unstable verdicts are counted by design and row, and their share has a bound."""

from pathlib import Path

import pytest
import stability
from stability import bound, count, line, lines_of, table

from upheld.verdicts import Verdict

UPHELD, VIOLATED = Verdict.UPHELD, Verdict.VIOLATED
ONE, OTHER = ("plain", "G1.a"), ("broken/x", "G1.a")


def test_a_verdict_is_compared_with_most_of_its_design_and_row() -> None:
    """Another design says nothing of it, and what was judged once does not count."""
    found = count([(ONE, UPHELD), (ONE, VIOLATED), (ONE, UPHELD), (OTHER, VIOLATED)])

    assert (found.rows, found.kinds) == (3, 1)
    assert found.unstable == {"plain G1.a: violated": 1}


@pytest.mark.parametrize(("unstable", "mean"), [(0, 3.0), (1, 4.74), (2, 6.3), (5, 10.51)])
def test_the_bound_is_that_of_a_poisson_count(unstable: int, mean: float) -> None:
    """The known limits of 95 % come out."""
    assert bound(unstable, 1000) == pytest.approx(mean / 1000, abs=1e-5)


def test_a_page_keeps_the_lines_of_other_commits_and_sums_them() -> None:
    """A line is read back as it was written."""
    lines = {
        "aaaa": line("aaaa", count([(ONE, UPHELD)] * 1000)),
        "bbbb": line("bbbb", count([(ONE, UPHELD)] * 999 + [(ONE, VIOLATED)])),
    }

    text = table(lines)

    assert lines_of(text) == lines
    assert "| bbbb | 1000 | 1 | 1: plain G1.a: violated (1) | 0.47% |" in text
    assert "| all | 2000 | | 1 | 0.24% |" in text


def test_what_is_not_committed_cannot_be_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody could say which design was judged."""
    monkeypatch.setattr(
        stability.subprocess,
        "run",
        lambda *_, **__: stability.subprocess.CompletedProcess([], 0, b" M impl/plain/loop.py\n"),
    )

    assert stability.main(["--rounds", "0"]) == 4
    assert "impl/plain/loop.py" in capsys.readouterr().err


def test_a_first_round_counts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No row was judged twice then, and a report that is cut is passed over."""
    (tmp_path / "abc" / "000-plain").mkdir(parents=True)
    (tmp_path / "abc" / "000-plain" / "report.jsonl").write_text('{"kind":"row"}\n')
    monkeypatch.setattr(stability, "head", lambda: "abc")
    before = stability.PAGE.read_text(encoding="utf-8")

    assert stability.main(["--rounds", "0", "--out", str(tmp_path)]) == 0
    assert "no row was judged twice on abc yet" in capsys.readouterr().err
    assert stability.PAGE.read_text(encoding="utf-8") == before
