"""The reports of pytest, as `junit.xml` may hold them."""

import pytest
from _pytest._code.code import ExceptionChainRepr, ReprTraceback

from upheld.text import printable


def plain(report: pytest.TestReport) -> pytest.TestReport:
    """Return the report with each text in it printable; it is changed."""
    said = report.longrepr
    if isinstance(said, str):
        report.longrepr = printable(said)
    elif isinstance(said, ExceptionChainRepr):
        if said.reprcrash:
            said.reprcrash.message = printable(said.reprcrash.message)
        for traceback, _, _ in said.chain:
            _clean(traceback)
        _clean(said.reprtraceback)
    report.sections = [(name, printable(text)) for name, text in report.sections]
    return report


def _clean(traceback: ReprTraceback) -> None:
    for entry in traceback.reprentries:
        entry.lines = [printable(line) for line in entry.lines]
