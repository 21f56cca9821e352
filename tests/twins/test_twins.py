"""Every twin is judged right.

A twin is a design that keeps its contract in another way than ours do. Each was called wrong
before. A wrong design that looks like it is caught on a row of the same scenario. One run judges
all of them, and `pytest tests/twins -k NAME` judges one.
"""

from collections import defaultdict
from pathlib import Path

import pytest
from watched import watched

from upheld import commands, report
from upheld.protocol.manifest import Manifest, load
from upheld.report import RowResult
from upheld.spec import catalogue
from upheld.spec.selection import rows_of_the_twin

RUN_S = 1800
DESIGNS = Path(__file__).parent / "designs"
TWINS = {folder.name: load(str(folder)) for folder in sorted(DESIGNS.iterdir())}
FOUND = catalogue.load()

Rows = dict[str, dict[str, RowResult]]  # design -> row -> what it came to


@pytest.fixture(scope="session")
def judged(
    request: pytest.FixtureRequest,
    pytestconfig: pytest.Config,
    tmp_path_factory: pytest.TempPathFactory,
) -> Rows:
    """Judge the twins whose tests were chosen, each on its rows, three rows at a time."""
    out = tmp_path_factory.mktemp("twins")
    chosen = [twin for name, twin in TWINS.items() if _is_chosen(name, request.session.items)]
    designs = [argument for twin in chosen for argument in ("--design", str(twin.folder))]
    options = ["--broker", "embedded", "--lanes", "3", "--out", str(out), *designs]
    command = commands.own_module("upheld", "run", *options)
    watched(command, out / "said.txt", RUN_S, pytestconfig)
    rows: Rows = defaultdict(dict)
    for row in report.read(out / "report.jsonl")[0]:
        rows[row.design][row.id] = row
    return rows


def _is_chosen(name: str, items: list[pytest.Item]) -> bool:
    return any(item.name == f"test_is_right[{name}]" for item in items)


@pytest.mark.parametrize("name", TWINS)
def test_is_right(name: str, judged: Rows) -> None:
    """A twin has the verdict of its contract on each of its rows."""
    twin: Manifest = TWINS[name]
    assert twin.twin
    expected = dict.fromkeys(rows_of_the_twin(FOUND, twin), twin.twin.verdict)

    found = judged[name]

    others = [row for row in found.values() if row.verdict != twin.twin.verdict]
    assert {row: result.verdict for row, result in found.items()} == expected, [
        (row.id, row.reason, *(each.text for each in row.anomalies[:2])) for row in others
    ]
