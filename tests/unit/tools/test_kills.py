"""The kill matrix takes from a report what it says of the designs."""

import json
from pathlib import Path

import kills as tool

from upheld.spec.kills import Kills

DESIGN = "broken/reads_uncommitted"


def line(row: str, verdict: str, code: str | None) -> str:
    """Return a row of a report."""
    fields = {
        "kind": "row",
        "design": DESIGN,
        "id": row,
        "verdict": verdict,
        "code": code,
        "anomalies": [],
        "history": "history/none.jsonl.gz",
        "seconds": 0.1,
    }
    return json.dumps(fields) + "\n"


def test_what_the_machine_lacked_is_judged_again(tmp_path: Path) -> None:
    """A row without its Redis says nothing of a design, so it has no seconds either."""
    report = tmp_path / "report.jsonl"
    report.write_text(
        line("G1.a", "unsupported", "undeclared")
        + line("G1.b", "unsupported", "machine-lacks")
        + line("G1.c", "upheld", None)
    )
    matrix = Kills()

    assert tool.take(matrix, report) == 2
    assert matrix.designs[DESIGN].rows() == {"G1.a", "G1.c"}
    assert tool.seconds_of(report).keys() == {"G1.a", "G1.c"}
