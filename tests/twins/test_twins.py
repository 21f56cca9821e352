"""Every twin is judged right, and its copy with one wrong line is caught.

A twin is a design that keeps its contract in another way than ours do. Each was called wrong
before. One run judges all of them, another one their wrong designs. `pytest tests/twins -k NAME`
judges one twin and its wrong design. With `--slice K/N` an N-th of them have their turn, so that N
turns judge each of them.
"""

from collections.abc import Iterable
from pathlib import Path

import pytest
from judged import Rows, chosen_for, judge
from twins import make_wrong_design

from upheld.protocol.manifest import Manifest, Twin, load
from upheld.report import RowResult
from upheld.spec import catalogue
from upheld.spec.depths import share_of
from upheld.spec.selection import rows_of_the_twin

DESIGNS = Path(__file__).parent / "designs"
TWINS = {folder.name: load(str(folder)) for folder in sorted(DESIGNS.iterdir())}
FOUND = catalogue.load()


@pytest.fixture(scope="session")
def judged(
    request: pytest.FixtureRequest,
    pytestconfig: pytest.Config,
    tmp_path_factory: pytest.TempPathFactory,
) -> Rows:
    """Judge the twins whose tests were chosen, each on its rows."""
    names = chosen_for("test_is_right", TWINS, request.session.items)
    folders = [str(TWINS[name].folder) for name in names]
    return judge(folders, tmp_path_factory.mktemp("twins"), pytestconfig).rows


@pytest.fixture(scope="session")
def judged_wrong(
    request: pytest.FixtureRequest,
    pytestconfig: pytest.Config,
    tmp_path_factory: pytest.TempPathFactory,
) -> Rows:
    """Judge the wrong designs of the twins that were chosen, on the rows of the twins."""
    out = tmp_path_factory.mktemp("wrong")
    names = chosen_for("test_its_wrong_design_is_caught", TWINS, request.session.items)
    for name in names:
        make_wrong_design(TWINS[name].folder, twin_of(name).line, out / "designs" / name)
    folders = [str(out / "designs" / name) for name in names]
    return judge(folders, out, pytestconfig).rows


def twin_of(name: str) -> Twin:
    """Return the table `[twin]` of a twin."""
    twin = TWINS[name].twin
    assert twin
    return twin


def of_turn(turn: str) -> list[str]:
    """Return the twins whose turn it is, such as 3/8; all if no turn is named."""
    names = sorted(TWINS)
    if not turn:
        return names
    share = share_of(turn, "--slice")
    return names[share.number - 1 :: share.count]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests for the twins whose turn it is, or for all."""
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", of_turn(metafunc.config.getoption("--slice")))


def test_is_right(name: str, judged: Rows) -> None:
    """A twin has the verdict of its contract on each of its rows."""
    design: Manifest = TWINS[name]
    expected = dict.fromkeys(rows_of_the_twin(FOUND, design), twin_of(name).verdict)

    found = judged[name]

    others = [row for row in found.values() if row.verdict != twin_of(name).verdict]
    assert {row: result.verdict for row, result in found.items()} == expected, told(others)


def test_its_wrong_design_is_caught(name: str, judged_wrong: Rows) -> None:
    """A row of the twin catches its wrong design by the anomaly that the twin names."""
    found = judged_wrong[name].values()

    named = {each.name for row in found if row.verdict == "violated" for each in row.anomalies}
    assert twin_of(name).line.anomaly in named, told(found)


def test_each_twin_has_its_turn() -> None:
    """Eight slices of CI judge each twin once."""
    turns = [name for number in range(1, 9) for name in of_turn(f"{number}/8")]

    assert sorted(turns) == of_turn("") == sorted(TWINS)


def told(rows: Iterable[RowResult]) -> list[tuple[str, ...]]:
    """Return what rows came to, and why, for a message."""
    return [(row.id, row.verdict, row.reason, *map(str, row.anomalies[:2])) for row in rows]
