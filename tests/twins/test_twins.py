"""Every twin is judged right, and its wrong design of one other line is caught.

A twin is a design that keeps its contract in another way than ours do. Each was called wrong
before. One run judges all of them, another one their wrong designs. `pytest tests/twins -k NAME`
judges one twin and its wrong design.
"""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest
from twins import make_wrong_design
from watched import watched

from upheld import commands, report
from upheld.protocol.manifest import Manifest, Twin, load
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
    """Judge the twins whose tests were chosen, each on its rows."""
    chosen = [TWINS[name].folder for name in chosen_for("test_is_right", request.session.items)]
    return judge(chosen, tmp_path_factory.mktemp("twins"), pytestconfig)


@pytest.fixture(scope="session")
def judged_wrong(
    request: pytest.FixtureRequest,
    pytestconfig: pytest.Config,
    tmp_path_factory: pytest.TempPathFactory,
) -> Rows:
    """Judge the wrong designs of the twins that were chosen, on the rows of the twins."""
    out = tmp_path_factory.mktemp("wrong")
    folders = []
    for name in chosen_for("test_its_wrong_design_is_caught", request.session.items):
        folders.append(out / "designs" / name)
        make_wrong_design(TWINS[name].folder, twin_of(name).line, folders[-1])
    return judge(folders, out, pytestconfig)


def chosen_for(test: str, items: list[pytest.Item]) -> list[str]:
    """Return the twins for which a test was chosen."""
    asked = {item.name for item in items}
    return [name for name in TWINS if f"{test}[{name}]" in asked]


def judge(folders: Iterable[Path], out: Path, config: pytest.Config) -> Rows:
    """Judge designs in one run, three rows at a time."""
    designs = [argument for folder in folders for argument in ("--design", str(folder))]
    options = ["--broker", "embedded", "--lanes", "3", "--out", str(out), *designs]
    watched(commands.own_module("upheld", "run", *options), out / "said.txt", RUN_S, config)
    rows: Rows = defaultdict(dict)
    for row in report.read(out / "report.jsonl")[0]:
        rows[row.design][row.id] = row
    return rows


def twin_of(name: str) -> Twin:
    """Return the table `[twin]` of a twin."""
    twin = TWINS[name].twin
    assert twin
    return twin


@pytest.mark.parametrize("name", TWINS)
def test_is_right(name: str, judged: Rows) -> None:
    """A twin has the verdict of its contract on each of its rows."""
    design: Manifest = TWINS[name]
    expected = dict.fromkeys(rows_of_the_twin(FOUND, design), twin_of(name).verdict)

    found = judged[name]

    others = [row for row in found.values() if row.verdict != twin_of(name).verdict]
    assert {row: result.verdict for row, result in found.items()} == expected, told(others)


@pytest.mark.parametrize("name", TWINS)
def test_its_wrong_design_is_caught(name: str, judged_wrong: Rows) -> None:
    """A row of the twin catches the design with the wrong line, as what the twin says."""
    found = judged_wrong[name].values()

    named = {each.name for row in found if row.verdict == "violated" for each in row.anomalies}
    assert twin_of(name).line.anomaly in named, told(found)


def told(rows: Iterable[RowResult]) -> list[tuple[str, ...]]:
    """Return what rows came to, and why, for a message."""
    return [(row.id, row.verdict, row.reason, *map(str, row.anomalies[:2])) for row in rows]
