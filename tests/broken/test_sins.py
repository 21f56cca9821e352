"""Every wrong design is caught where it says, as what it says, and passes its control; one run judges them all."""

import json
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest

from streamgate import catalogue, report
from streamgate.checks import CHECKS
from streamgate.cli import rows_of_the_sin
from streamgate.designs.manifest import load, shipped
from streamgate.report import RowResult
from streamgate.verdicts import Verdict

SINS = [name for name in shipped() if name.startswith("broken/")]
RUN_S = 1800


@dataclass
class Run:
    """What the run left behind."""

    exit_code: int
    out: Path
    rows: dict[str, dict[str, RowResult]]  # design -> row -> what it came to


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One run of every wrong design, three rows at a time; its seed is in the report and in every card."""
    out = tmp_path_factory.mktemp("broken")
    designs = [argument for name in SINS for argument in ("--design", name)]
    options = ["--broker", "embedded", "--lanes", "3", "--out", str(out), *designs]
    command = [sys.executable, "-m", "streamgate.cli", "run", *options]
    done = subprocess.run(command, timeout=RUN_S, check=False)
    rows: dict[str, dict[str, RowResult]] = defaultdict(dict)
    for row in report.read(out / "report.jsonl")[0]:
        rows[row.design][row.id] = row
    return Run(done.returncode, out, rows)


@pytest.mark.parametrize("name", SINS)
def test_is_caught(name: str, run: Run) -> None:
    """Its anomaly comes first on every row that it names, and its control is upheld."""
    design = load(name)
    assert design.sin
    expected = dict.fromkeys(rows_of_the_sin(catalogue.load(), design), ("violated", design.sin.anomaly))
    expected[design.sin.control or ""] = ("upheld", "")

    found = {
        row: (result.verdict, result.anomalies[0].name if result.anomalies else result.reason)
        for row, result in run.rows[name].items()
    }

    others = [row for row in run.rows[name].values() if found[row.id] != expected.get(row.id)]
    assert found == expected, [(row.id, row.reason, *(each.text for each in row.anomalies[:2])) for row in others]


def test_the_run_fails(run: Run) -> None:
    """A violation that nobody knew of is exit code 1."""
    assert run.exit_code == 1


def test_every_check_catches_somebody(run: Run) -> None:
    """No check is in the specification for decoration."""
    caught = set()
    for result in (result for rows in run.rows.values() for result in rows.values()):
        if result.verdict is Verdict.VIOLATED:
            lines = (run.out / result.history).read_text(encoding="utf-8").splitlines()
            last = next((line for line in reversed(lines) if line.startswith('{"kind":"claim"')), None)
            caught |= {json.loads(last)["check"]} if last else set()  # it ends with the claim that does not hold

    assert caught == set(CHECKS)


def test_the_red_card_of_the_readme_is_real(run: Run) -> None:
    """The README's card names a design, a row, a claim and an anomaly that this run has seen together."""
    card = (Path(__file__).parents[2] / "README.md").read_text().partition("<!-- card -->")[2].partition("<!--")[0]
    said = [line.split(None, 1)[-1] for line in card.strip().strip("`").strip().splitlines()]
    row_id, design = said[0].split()
    claim, anomaly = said[1], next(line for line in card.splitlines() if "anomaly" in line).split()[1].rstrip(":")

    result = run.rows[design][row_id]

    assert (result.name, result.anomalies[0].name) == (claim, anomaly)
