"""Every wrong design is caught where it says, as what it says.

It passes its control. One run judges all of them, and `pytest tests/mutants -k NAME` judges one.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from judged import Rows, chosen_for, judge

from upheld.checks import CHECKS
from upheld.protocol.manifest import load, shipped
from upheld.spec import catalogue
from upheld.spec.depths import Depth
from upheld.spec.selection import rows_of_the_mutant
from upheld.verdicts import Verdict

FOUND = catalogue.load()
SINS = {name: load(name) for name in shipped() if name.startswith("broken/")}


def rows_at(depth: Depth) -> dict[str, set[str]]:
    """Return the rows of each wrong design that is judged at a depth."""
    rows = {name: rows_of_the_mutant(FOUND, design, depth) for name, design in SINS.items()}
    return {name: ids for name, ids in rows.items() if ids}


@dataclass
class Run:
    """The report and the output of the run."""

    depth: Depth
    exit_code: int
    out: Path
    rows: Rows


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the test for every wrong design that has a row at the depth asked for."""
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", rows_at(metafunc.config.getoption("--depth")))


@pytest.fixture(scope="session")
def run(
    request: pytest.FixtureRequest,
    pytestconfig: pytest.Config,
    tmp_path_factory: pytest.TempPathFactory,
) -> Run:
    """Run the wrong designs, three rows at a time.

    The report and every card have the seed.
    """
    depth: Depth = pytestconfig.getoption("--depth")
    out = tmp_path_factory.mktemp("broken")
    names = chosen_for("test_is_caught", SINS, request.session.items)
    if len(names) < len(request.session.items):  # the other tests are of all designs
        names = list(rows_at(depth))
    judged = judge(names, out, pytestconfig, "--depth", depth)
    return Run(depth, judged.exit_code, out, judged.rows)


def test_is_caught(name: str, run: Run) -> None:
    """The anomaly of a design comes first on every row that it is judged on.

    Its control is upheld.
    """
    design = SINS[name]
    assert design.sin
    expected = dict.fromkeys(rows_at(run.depth)[name], ("violated", design.sin.anomaly))
    expected[design.sin.control or ""] = ("upheld", "")

    found = {
        row: (result.verdict, result.anomalies[0].name if result.anomalies else result.reason)
        for row, result in run.rows[name].items()
    }

    others = [row for row in run.rows[name].values() if found[row.id] != expected.get(row.id)]
    assert found == expected, [
        (row.id, row.reason, *(each.text for each in row.anomalies[:2])) for row in others
    ]


def test_the_run_fails(run: Run) -> None:
    """A violation that nobody knew of is exit code 1."""
    assert run.exit_code == 1


def test_every_check_catches_somebody(run: Run) -> None:
    """Each check catches a wrong design.

    The cheapest rows of a few guarantees need not show that.
    """
    if run.depth == "quick":
        return
    caught = set()
    for result in (result for rows in run.rows.values() for result in rows.values()):
        if result.verdict is Verdict.VIOLATED:
            lines = (run.out / result.history).read_text(encoding="utf-8").splitlines()
            last = next(
                (line for line in reversed(lines) if line.startswith('{"kind":"claim"')), None
            )
            # It ends with the claim that does not hold.
            caught |= {json.loads(last)["check"]} if last else set()

    assert caught == set(CHECKS)


def test_the_red_card_of_the_readme_is_real(run: Run) -> None:
    """The README's card names a design, a row, a claim and an anomaly of this run."""
    card = (
        (Path(__file__).parents[2] / "README.md")
        .read_text()
        .partition("<!-- card -->")[2]
        .partition("<!--")[0]
    )
    said = [line.split(None, 1)[-1] for line in card.strip().strip("`").strip().splitlines()]
    row_id, design = said[0].split()
    claim = said[1]
    anomaly = next(line for line in card.splitlines() if "anomaly" in line).split()[1].rstrip(":")

    if run.depth != "full" and row_id not in run.rows[design]:
        return
    result = run.rows[design][row_id]

    assert (result.name, result.anomalies[0].name) == (claim, anomaly)
