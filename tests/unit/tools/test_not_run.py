"""The last line of the tests counts what was not run, and says why."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from not_run import FILE, begin, keep, line

ROOT = Path(__file__).parents[3]
SKIPPED = "node is not on PATH"


def skipped(reason: str) -> pytest.TestReport:
    """Return the report of a skipped test."""
    where = ("a.py", 1, f"Skipped: {reason}")
    return pytest.TestReport("a.py::b", ("a.py", 1, "b"), {}, "skipped", where, "setup")


def test_skipped_tests_and_lacking_rows_are_counted_by_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unsupported row that no machine could judge is none of them."""
    begin(tmp_path)
    for name, reasons in {"meta": ["no engine"], "page": [SKIPPED, SKIPPED]}.items():
        monkeypatch.setenv(FILE, str(tmp_path / f"not-run/{name}.json"))
        keep(map(skipped, reasons))
    report = tmp_path / "out/plain/report.jsonl"
    report.parent.mkdir(parents=True)
    rows = [{"code": "machine-lacks", "reason": "this machine has no Redis"}, {"code": "cannot"}]
    report.write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    assert line(tmp_path) == (
        "not run: 3 tests (2 node is not on PATH; 1 no engine), 1 row (1 this machine has no Redis)"
    )


def test_a_run_that_leaves_nothing_out_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line is always there, so that its absence is no good news."""
    begin(tmp_path)
    monkeypatch.setenv(FILE, str(tmp_path / "not-run/meta.json"))
    keep([])

    assert line(tmp_path) == "not run: nothing"


def test_what_an_earlier_run_left_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that tests nothing, such as `tox list`, has no line."""
    monkeypatch.setenv(FILE, str(tmp_path / "not-run/meta.json"))
    keep([skipped(SKIPPED)])
    report = tmp_path / "out/plain/report.jsonl"
    report.parent.mkdir(parents=True)
    report.write_text("{}\n")
    os.utime(report, (0, 0))

    begin(tmp_path)

    assert line(tmp_path) == ""


def test_without_a_driver_the_tests_of_the_page_are_skipped_and_counted(tmp_path: Path) -> None:
    """The command passes, and the reason is in the file of the environment."""
    to = tmp_path / "page.json"
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "tests/browser", "-q", "-p", "no:cacheprovider"],
        cwd=ROOT,
        env=os.environ | {"PATH": str(tmp_path), FILE: str(to)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert found.returncode == 0, found.stdout
    reasons = set(json.loads(to.read_text()))
    assert {"chromium is not on PATH", SKIPPED} <= reasons
    assert all(reason.endswith(" is not on PATH") for reason in reasons)
