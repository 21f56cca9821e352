"""Rows as tests of a project: a safe service passes, a naive one does not."""

from importlib.metadata import entry_points
from pathlib import Path

import pytest

from upheld.brokers import Broker
from upheld.report import read

pytest_plugins = ("pytester",)

IS_INSTALLED = "upheld" in entry_points(group="pytest11").names
PLUGIN = () if IS_INSTALLED else ("-p", "upheld.testing.plugin")
EXAMPLES = Path(__file__).parents[2] / "examples" / "orders"
SAFE = "G22.commit-applied-and-refused[ledger-exactly_once]"
NAIVE = "G47.commits-what-came-out[ledger-at_least_once]"
OWN = "G22.an-order-is-paid-once[relay-exactly_once]"
PAGE = Path(__file__).parents[2] / "docs" / "pytest.md"
MODULE = """
import upheld

options = ("--bootstrap", {bootstrap!r})
orders = upheld.design({folder!r}, options=options)
naive = upheld.design({folder!r} + "/naive", options=options)
upheld.scenarios("features", design=orders)

@orders.guarantees("G22", depth="quick")
def test_orders(upheld_row):
    assert upheld_row.oracle == "itself"

@naive.guarantees("G47")
def test_naive():
    raise AssertionError("the body of a violated row does not run")
"""


def test_a_service_is_judged_by_tests(broker: Broker, pytester: pytest.Pytester) -> None:
    """The text of a failure is the card, and the page's own scenario is upheld."""
    pytester.makepyfile(test_rows=MODULE.format(bootstrap=broker.bootstrap, folder=str(EXAMPLES)))
    (pytester.mkdir("features") / "orders.feature").write_text(shown())
    chosen = [f"test_rows.py::{name}" for name in (f"test_orders[{SAFE}]", f"test_naive[{NAIVE}]")]
    own = f"test_rows.py::test_features[{OWN}]"

    result = pytester.runpytest_subprocess(*PLUGIN, *chosen, own)

    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines([f"VIOLATED  {NAIVE.replace('[', '[[]')}  orders-naive"])
    result.stdout.fnmatch_lines(["  anomaly   behind-commit: *"])
    result.stdout.no_fnmatch_line("*Traceback*")
    rows = [row for report in reports(pytester.path) for row in read(report)[0]]
    assert {row.id: str(row.verdict) for row in rows} == {
        SAFE: "upheld",
        OWN: "upheld",
        NAIVE: "violated",
    }


def shown() -> str:
    """Return the feature that the page shows."""
    return PAGE.read_text(encoding="utf-8").partition("```gherkin\n")[2].partition("```")[0]


def reports(folder: Path) -> list[Path]:
    """Return the reports of a session, one a design."""
    return [
        file for file in folder.glob("upheld-out/*/report.jsonl") if not file.parent.is_symlink()
    ]
