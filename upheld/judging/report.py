"""The report beside a history, which says what the history's lines were."""

from collections.abc import Iterator
from pathlib import Path

from upheld.errors import UsageProblem
from upheld.reading import is_file, loaded, read_bytes

NAME = "report.jsonl"
DEEPEST = 2  # a history lies in OUT/history, or in OUT/lane-1/history


def demand_reported(path: Path, sha256: str) -> None:
    """Compare a history with its row in the reports beside it.

    A report that is missing says nothing. Nor does a row of a version without hashes.

    Args:
        path: The history.
        sha256: The hash of its lines.

    Raises:
        UsageProblem: A report has another hash for it.
    """
    folder = path.absolute().parent
    for out in folder.parents[:DEEPEST]:
        name = f"{path.absolute().relative_to(out).as_posix()}"
        for stated in _hashes(out / NAME, name):
            if stated != sha256:
                raise UsageProblem(
                    f"{path} was altered: {out / NAME} has another hash for its lines"
                )


def _hashes(report: Path, history: str) -> Iterator[str]:
    """Go through the hashes that a report states for a history."""
    if not is_file(report):
        return
    for line in read_bytes(report).splitlines():
        if b'"history_sha256"' not in line:
            continue
        try:
            row = loaded(line)
        except ValueError:
            continue
        if isinstance(row, dict) and row.get("history") == history:
            stated = row.get("history_sha256")
            if isinstance(stated, str) and stated:
                yield stated
