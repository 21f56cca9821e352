"""Every example is judged, and its naive sibling is caught by the right anomaly.

At depth core two examples are judged on one row of each guarantee, by turns: `--slice K/8` says
whose turn it is, as it says which other rows a run judges. At depth full all are judged at core.
"""

import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from watched import watched

from upheld import commands, report
from upheld.protocol.manifest import Manifest, load
from upheld.report import RowResult
from upheld.spec.depths import Depth, share_of
from upheld.verdicts import Verdict

RUN_S: Final = 2400
FOLDER: Final = Path(__file__).parents[2] / "examples"
AT_A_TURN: Final = 2
MAY_BE: Final = {Verdict.UPHELD, Verdict.UNSUPPORTED}

Rows = dict[str, dict[str, RowResult]]  # design -> row -> what it came to


class Mistake(NamedTuple):
    """The row in which a naive example is caught, and its first anomaly."""

    row: str
    anomaly: str


# Struck at the request, when the alerts of its transaction are out. Some alerts are not yet when a
# transaction is seen open.
BEFORE_ITS_COMMIT: Final = "G22.at-each-request[ledger-exactly_once-before-EndTxn]"
COMMITS_AHEAD: Final = Mistake("G47.commits-what-came-out[relay-at_least_once]", "behind-commit")
EXAMPLES: Final[dict[str, Mistake | None]] = {
    "alerts": Mistake(BEFORE_ITS_COMMIT, "ahead-of-commit"),
    "orders": COMMITS_AHEAD,
    "prices": None,
    "spark-sink": Mistake("G1.replayed-after-a-crash[ledger-at_least_once]", "lost"),
    "spring": COMMITS_AHEAD,
    "streams": Mistake("G1.replayed-after-a-crash[ledger-exactly_once]", "phantom"),
    "totals": Mistake("G1.replayed-after-a-crash[ledger-at_least_once]", "phantom"),
    "untouched": COMMITS_AHEAD,
}
FIRST_TURN: Final = "1/8"
SLOW: Final = {"spark-sink"}  # a row takes a minute and more, so it is judged at depth full alone


def of_turn(number: int) -> list[str]:
    """Return the examples whose turn it is, counted from 1."""
    names = sorted(EXAMPLES.keys() - SLOW)
    first = AT_A_TURN * (number - 1)
    return [names[(first + each) % len(names)] for each in range(AT_A_TURN)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests for the examples whose turn it is, or for all."""
    depth: Depth = metafunc.config.getoption("--depth")
    turn = share_of(metafunc.config.getoption("--slice") or FIRST_TURN, "--slice")
    names = sorted(EXAMPLES) if depth == "full" else of_turn(turn.number)
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", [_marked(name) for name in names])
    elif "naive" in metafunc.fixturenames:
        metafunc.parametrize("naive", [_marked(name) for name in names if EXAMPLES[name]])


def _marked(name: str) -> Any:
    """Return the name of an example, skipped where a program is missing that prepares it."""
    prepare = load(str(FOLDER / name)).prepare
    missing = [each for each in prepare[:1] if each[0] != "{" and not shutil.which(each)]
    marks = [pytest.mark.skip(reason=f"{missing[0]} is not on PATH")] if missing else []
    return pytest.param(name, marks=marks)


def rows_of(designs: list[Manifest], options: list[str], out: Path, config: pytest.Config) -> Rows:
    """Judge some designs in one run."""
    named = [argument for design in designs for argument in ("--design", str(design.folder))]
    command = commands.own_module(
        "upheld", "run", "--broker", "embedded", "--lanes", "3", "--out", str(out), *named, *options
    )
    watched(command, out.with_suffix(".txt"), RUN_S, config)
    rows: Rows = defaultdict(dict)
    for row in report.read(out / "report.jsonl")[0]:
        rows[row.design][row.id] = row
    return rows


def chosen(session: pytest.Session, fixture: str) -> list[str]:
    """Return the examples whose tests were chosen and are not skipped."""
    return [
        item.callspec.params[fixture]
        for item in session.items
        if isinstance(item, pytest.Function)
        and fixture in item.fixturenames
        and not item.get_closest_marker("skip")
    ]


@pytest.fixture(scope="session")
def judged(
    request: pytest.FixtureRequest,
    pytestconfig: pytest.Config,
    tmp_path_factory: pytest.TempPathFactory,
) -> Rows:
    """Judge the examples."""
    depth = "core" if pytestconfig.getoption("--depth") == "full" else "quick"
    designs = [load(str(FOLDER / name)) for name in chosen(request.session, "name")]
    out = tmp_path_factory.mktemp("examples") / "out"
    return rows_of(designs, ["--depth", depth], out, pytestconfig)


@pytest.fixture(scope="session")
def caught(
    request: pytest.FixtureRequest,
    pytestconfig: pytest.Config,
    tmp_path_factory: pytest.TempPathFactory,
) -> Rows:
    """Judge the naive examples, each on the row that shows its mistake."""
    found = {name: EXAMPLES[name] for name in chosen(request.session, "naive")}
    designs = {name: load(str(FOLDER / name / "naive")) for name in found}
    folder = tmp_path_factory.mktemp("naive")
    rows = folder / "rows.txt"
    rows.write_text(
        "".join(f"{designs[name].name} {each.row}\n" for name, each in found.items() if each)
    )
    return rows_of(list(designs.values()), ["--rows", str(rows)], folder / "out", pytestconfig)


def test_an_example_is_upheld(name: str, judged: Rows) -> None:
    """Each row is upheld or unsupported, and some are upheld."""
    rows = judged[load(str(FOLDER / name)).name].values()
    others = [(row.id, row.verdict, row.reason) for row in rows if row.verdict not in MAY_BE]

    assert others == []
    assert any(row.verdict is Verdict.UPHELD for row in rows)


def test_a_naive_example_is_caught(naive: str, caught: Rows) -> None:
    """The anomaly that comes first is that of its mistake."""
    mistake = EXAMPLES[naive]
    assert mistake
    row = caught[load(str(FOLDER / naive / "naive")).name][mistake.row]

    assert row.verdict is Verdict.VIOLATED, row.reason
    assert row.anomalies[0].name == mistake.anomaly


def test_each_example_has_its_turn() -> None:
    """Two are judged at a turn, and eight turns judge all of them."""
    turns = [set(of_turn(number)) for number in range(1, 9)]

    assert {len(turn) for turn in turns} == {AT_A_TURN}
    assert set().union(*turns) == EXAMPLES.keys() - SLOW
