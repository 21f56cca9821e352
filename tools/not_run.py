"""Say in one line what a run of tox did not run, and why.

    python tools/not_run.py tox [ARGUMENTS]    run tox, and print the line at its end
    python tools/not_run.py                    print the line of the last run

`bootstrap.py tox` is the first. A machine that lacks a browser or an engine passes the rest.

Each environment with tests leaves a file with its skipped tests, and each run a report with the
rows that this machine lacks something for.
"""

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pytest

WORK: Final = Path(__file__).resolve().parent.parent / ".tox"
FILE: Final = "UPHELD_NOT_RUN"  # the variable by which tox.ini names the file of an environment
LACKS: Final = "machine-lacks"  # upheld.verdicts.Reason.MACHINE_LACKS


def begin(work: Path = WORK) -> None:
    """Forget what earlier runs did not run."""
    folder = work / "not-run"
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.json"):
        path.unlink()
    (folder / "began").touch()


def keep(skipped: Iterable[pytest.TestReport]) -> None:
    """Write the number of skipped tests by reason, if an environment asks for it."""
    if to := os.environ.get(FILE):
        reasons = Counter(_reason(report) for report in skipped)
        Path(to).parent.mkdir(parents=True, exist_ok=True)
        Path(to).write_text(json.dumps(reasons), encoding="utf-8")


def line(work: Path = WORK) -> str:
    """Return the line; empty if nothing that tests or judges was begun."""
    began = work / "not-run/began"
    files = sorted(began.parent.glob("*.json"))
    since = began.stat().st_mtime if began.is_file() else float("inf")
    found = [path for path in work.glob("out/*/report.jsonl") if path.stat().st_mtime >= since]
    if not files and not found:
        return ""
    tests = Counter[str]()
    for path in files:
        tests.update(json.loads(path.read_text(encoding="utf-8")))
    rows = Counter(reason for path in found for reason in _lacking(path))
    return "not run: " + (", ".join([*_said("test", tests), *_said("row", rows)]) or "nothing")


def _reason(report: pytest.TestReport) -> str:
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return said.removeprefix("Skipped: ")


def _lacking(report: Path) -> Iterator[str]:
    """Go through the reasons of the rows that this machine lacks something for."""
    for text in report.read_text(encoding="utf-8").splitlines():
        row = json.loads(text)
        if row.get("code") == LACKS:
            yield row["reason"]


def _said(what: str, counts: Counter[str]) -> Iterator[str]:
    if counts:
        reasons = "; ".join(f"{number} {reason}" for reason, number in counts.most_common())
        yield f"{counts.total()} {what}{'s' * (counts.total() > 1)} ({reasons})"


def main(arguments: list[str]) -> None:
    """Run tox if that is asked for, which ends the process, and print the line."""
    is_run = arguments[:1] == ["tox"]
    if not is_run:
        argparse.ArgumentParser(
            description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        ).parse_args(arguments)
    try:
        if is_run:
            import tox.run

            begin()
            tox.run.run(arguments[1:])
    finally:
        if said := line():
            print(said, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
