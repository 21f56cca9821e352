"""Rows as tests of pytest, judged by a miniature of a lane. No Kafka is started."""

import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path

import lanes
import pytest
from lanes import asked_of, lane_in, noted

from upheld import commands
from upheld.protocol.manifest import SHIPPED
from upheld.report import read
from upheld.spec import catalogue
from upheld.testing import plugin, session, verdicts

pytest_plugins = ("pytester",)

PLAIN = str(SHIPPED.resolve() / "plain")
ROW = "G22.commit-applied-and-refused[ledger-exactly_once]"
OTHER = "G24.a-member-leaves[ledger-at_least_once]"
# It is loaded already where this version is installed.
LOADED = (session, verdicts)  # now, and not again in each pytest of a test
IS_INSTALLED = "upheld" in importlib.metadata.entry_points(group="pytest11").names
PLUGIN = () if IS_INSTALLED else ("-p", "upheld.testing.plugin")
QUIET = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # this process has the plugin already
MODULE = f"""
import upheld
plain = upheld.design({PLAIN!r})

@plain.guarantees("G22", depth="quick")
def test_plain(upheld_row):
    print("the body has", upheld_row.seconds)
"""
Fields = Mapping[str, object]
Ran = Callable[..., pytest.RunResult]


@pytest.fixture(autouse=True)
def _plugins_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pytest look for plugins; a run of `upheld` in this process has told it not to."""
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", raising=False)


@pytest.fixture
def ran(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Ran:
    """Return a function that runs a module of tests, whose rows have such results."""

    def run(module: str, *arguments: str, **rows: Fields) -> pytest.RunResult:
        lane = lane_in(pytester.path, rows)
        monkeypatch.setattr(commands, "own_module", own_module(lane))
        pytester.makepyfile(test_rows=module)
        return pytester.runpytest_inprocess(*PLUGIN, *QUIET, *arguments)

    return run


def own_module(lane: list[str]) -> Callable[..., list[str]]:
    """Return a function that gives commands, that of a lane for each `upheld run`."""
    original = commands.own_module

    def command(name: str, *arguments: str) -> list[str]:
        return [*lane, *arguments] if name == "upheld" else original(name, *arguments)

    return command


def test_a_row_is_a_test_with_its_id(ran: Ran, pytester: pytest.Pytester) -> None:
    """Its body runs once the row is upheld, and takes the result."""
    result = ran(MODULE, "-v", "-s", "--strict-markers")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*test_plain*commit-applied-and-refused*the body has 1.5*"])
    assert asked_of(pytester.path) == [ROW]
    assert noted(pytester.path)[-1] == "closed"


def test_the_report_holds_the_rows(ran: Ran, pytester: pytest.Pytester) -> None:
    """It is that of a run, and whole."""
    result = ran(MODULE)
    (folder,) = re.findall(r"upheld: report in (.*)", result.stdout.str())
    rows, summary = read(Path(folder) / "report.jsonl")

    assert [row.id for row in rows] == [ROW]
    assert (summary.exit_code, summary.partial, summary.chosen) == (0, False, {"plain": 1})
    assert (pytester.path / "upheld-out" / "latest" / "junit.xml").is_file()


def test_the_failure_text_is_the_card(ran: Ran) -> None:
    """No line of a traceback is shown, and the body does not run."""
    anomaly = {"name": "lost", "text": "an entry is lost", "key": "alice"}
    result = ran(
        MODULE, **{ROW: {"verdict": "violated", "anomalies": [anomaly], "totals": {"lost": 1}}}
    )
    text = result.stdout.str()
    shown = text[text.index("= FAILURES") : text.index("\nupheld: report in")].splitlines()

    result.assert_outcomes(failed=1)
    assert shown[2:] == [
        f"VIOLATED  {ROW}  plain",
        "  claim     a claim",
        "  anomaly   lost: an entry is lost",
        "    key       alice",
        f"  again     upheld run --broker no --design {PLAIN} --only "
        f"'@{ROW.partition('[')[0]}' --seed {_seed(shown)}",
        f"  report    {_report(shown)}",
    ]
    assert "the body has" not in text


def _seed(lines: list[str]) -> str:
    return next(line.rpartition(" ")[2] for line in lines if "--seed" in line)


def _report(lines: list[str]) -> str:
    return next(line.rpartition(" ")[2] for line in lines if line.startswith("  report"))


ENDS: tuple[tuple[Fields, str], ...] = (
    (
        {"verdict": "unsupported", "reason": "no standby"},
        "SKIPPED [[]1[]] test_rows.py:*: unsupported: no standby",
    ),
    ({"verdict": "inconclusive", "reason": "too slow"}, "INCONCLUSIVE  {row}  plain"),
    (
        {"verdict": "inconclusive", "reason": "too slow", "known": "slow #7"},
        "INCONCLUSIVE  {row}  plain",
    ),
    ({"verdict": "harness-error", "reason": "no heap"}, "HARNESS-ERROR  {row}  plain"),
    ({"verdict": "violated", "known": "slow #7"}, "XFAIL*{row}*known failure: slow #7"),
    (
        {"verdict": "upheld", "known": "slow #7"},
        "{row}: the known failure slow #7 is upheld: take it off the list",
    ),
)


def test_each_verdict_has_an_outcome(ran: Ran) -> None:
    """A row that proves nothing never passes."""
    rows = sorted(row for row in catalogue.load().by_row if row.startswith("G21."))
    ends = dict(zip(rows, ENDS, strict=False))
    module = MODULE.replace('"G22", depth="quick"', '"G21"')
    result = ran(module, "-ra", **{row: fields for row, (fields, _) in ends.items()})

    assert result.parseoutcomes() == {
        "passed": len(rows) - len(ENDS),
        "skipped": 1,
        "failed": 3,
        "errors": 1,
        "xfailed": 1,
    }
    for row, (_, said) in ends.items():
        result.stdout.fnmatch_lines_random([said.format(row=row.replace("[", "[[]"))])


def test_a_body_may_fail_too(ran: Ran) -> None:
    """Then it fails as any test does."""
    result = ran(f"{MODULE}    assert upheld_row.seconds < 1\n")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *assert 1.5 < 1"])


def test_tests_of_a_class_share_a_row(ran: Ran, pytester: pytest.Pytester) -> None:
    """It is judged once, by one process."""
    result = ran(f"""
import upheld
plain = upheld.design({PLAIN!r})

@plain.guarantees("G22", depth="quick")
class TestPlain:
    def test_upheld(self): pass
    def test_fast(self, upheld_row): assert upheld_row.seconds < 2

@plain.guarantees("G22", depth="quick")
async def test_again(): pass

@plain.guarantees("G22", depth="quick")
@plain.guarantees("G22.commit-applied-and-refused", depth="quick")
def test_twice(): pass
""")

    assert result.parseoutcomes()["passed"] == 3  # an async test needs a plugin of its own
    assert asked_of(pytester.path) == [ROW]
    assert len([line for line in noted(pytester.path) if line.startswith("begun")]) == 1


def test_designs_of_one_test_are_named(ran: Ran, pytester: pytest.Pytester) -> None:
    """Their rows have the same ids."""
    result = ran(
        f"""
import upheld
plain = upheld.design({PLAIN!r})
again = upheld.design({PLAIN!r}, options=("--seed", "7"))

@plain.guarantees("G22", depth="quick")
@again.guarantees("G22", depth="quick")
def test_both(): pass
""",
        "--collect-only",
        "-q",
    )

    assert result.stdout.str().count(f"test_both[plain {ROW}") == 2


def test_a_path_is_relative_to_the_calling_file(ran: Ran, pytester: pytest.Pytester) -> None:
    """It does not hang on the current folder."""
    (pytester.mkdir("sub") / "design.toml").write_text("name = 7\n")
    (pytester.path / "sub" / "test_sub.py").write_text(MODULE.replace(PLAIN, "design.toml"))
    result = ran("", "sub")

    result.stdout.fnmatch_lines(["upheld: */sub/design.toml: *"])


WRONG = (
    (PLAIN, "nowhere", "upheld: There is no design at */nowhere, *"),
    ("G22", "G2222", "upheld: G2222 is no guarantee. Did you mean G22? *"),
    ("quick", "quickly", "upheld: There is no depth 'quickly'; there are quick, core, full.*"),
    ("G22", "G39", "upheld: *design.toml: no row of G39 applies at depth quick; *"),
    (f"{PLAIN!r}", f"{PLAIN!r}, options=['--broke']", "upheld: *unrecognized arguments*"),
    (f"{PLAIN!r}", f"{PLAIN!r}, options=['--lanes', '2']", "upheld: *--lanes is no option*"),
)


def test_bad_input_is_a_sentence_at_collection(ran: Ran, pytester: pytest.Pytester) -> None:
    """Nothing is started."""
    for number, (old, new, _) in enumerate(WRONG):
        (pytester.path / f"test_wrong_{number}.py").write_text(MODULE.replace(old, new))
    result = ran("")
    lines = result.stdout.lines
    heads = [number for number, line in enumerate(lines) if line.startswith("____")]

    assert result.parseoutcomes() == {"errors": len(WRONG)}
    assert [right - left for left, right in pairwise(heads)] == [2] * (len(WRONG) - 1)
    result.stdout.fnmatch_lines([said for _, _, said in WRONG])
    assert not noted(pytester.path)
    assert not (pytester.path / "upheld-out").exists()


def test_a_test_case_of_unittest_is_refused(ran: Ran) -> None:
    """Pytest makes no tests of it, one a row."""
    result = ran(
        MODULE.replace("def test_plain(upheld_row):", "class TestPlain(unittest.TestCase):")
        .replace("import upheld", "import unittest, upheld")
        .replace("    print", "    def test_it(self): print")
    )

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["upheld: test_it has no row; decorate a function, *"])


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"text": "No Java is here.", "exit_code": 3}, "upheld: No Java is here."),
        ({"exit": 7}, "upheld: The process that judges plain ended in the middle of G22*code 7;*"),
    ],
)
def test_a_problem_of_the_machine_is_an_error(
    ran: Ran, pytester: pytest.Pytester, fields: Fields, said: str
) -> None:
    """Nothing more is begun for the design."""
    result = ran(f"{MODULE}\ntest_again = test_plain\n", **{ROW: fields})

    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines([said, said])
    assert asked_of(pytester.path) == [ROW]


def test_only_the_chosen_rows_are_judged(ran: Ran, pytester: pytest.Pytester) -> None:
    """Pytest chooses: by words, by marks, by the first failure."""
    result = ran(MODULE, "-m", "not upheld")

    result.assert_outcomes(deselected=1)
    assert not noted(pytester.path)


IN_A_PROCESS = """
import sys
sys.path += {path!r}
from upheld import commands
from test_plugin import own_module
commands.own_module = own_module({lane!r})
"""


def apart(pytester: pytest.Pytester, fields: Fields, *arguments: str) -> pytest.RunResult:
    """Run the module in a process of its own."""
    lane = lane_in(pytester.path, {ROW: fields})
    path = [str(Path(__file__).parent), str(Path(lanes.__file__).parent)]
    pytester.makeconftest(IN_A_PROCESS.format(lane=lane, path=path))
    pytester.makepyfile(test_rows=MODULE.replace('"G22", depth="quick"', '"G22", "G21"'))
    return pytester.runpytest_subprocess(*PLUGIN, *arguments)


def test_each_worker_has_a_lane(pytester: pytest.Pytester) -> None:
    """Pytest-xdist hands out the rows, and none is judged twice."""
    result = apart(pytester, {}, "-n", "2", "-q")
    asked = asked_of(pytester.path)

    result.assert_outcomes(passed=len(asked))
    assert len(set(asked)) == len(asked) > 2
    assert noted(pytester.path).count("closed") == 2


def test_an_interrupt_ends_the_row(pytester: pytest.Pytester) -> None:
    """The lane is told to end, and the report says that it is partial."""
    result = apart(pytester, {"interrupts": True})

    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert "KeyboardInterrupt" in result.stdout.str()
    assert noted(pytester.path)[-2:] == [ROW, "ended"]
    _, summary = read(pytester.path / "upheld-out" / "latest" / "report.jsonl")
    assert (summary.partial, summary.exit_code) == (True, 130)


def test_nothing_is_loaded_without_a_use(pytester: pytest.Pytester) -> None:
    """Of upheld it is the plugin and the names of designs; and pytest gets no option."""
    pytester.makepyfile("def test_nothing(): pass")
    code = (
        f"import sys, pytest; pytest.main(['-q', *{PLUGIN}]); "
        "print(sorted(name for name in sys.modules if name.startswith('upheld')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )

    assert "1 passed" in done.stdout
    assert done.stdout.splitlines()[-1] == str(
        ["upheld", "upheld.testing", "upheld.testing.designs", "upheld.testing.plugin"]
    )
    assert not hasattr(plugin, "pytest_addoption")
