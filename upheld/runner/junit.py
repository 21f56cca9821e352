"""The reports of pytest, as `junit.xml` may hold them."""

import pytest
from _pytest._code.code import ExceptionChainRepr, ReprExceptionInfo, ReprTraceback

from upheld.text import printable


def plain(report: pytest.TestReport) -> pytest.TestReport:
    """Return the report with each text in it printable; it is changed."""
    said = report.longrepr
    if isinstance(said, str):
        report.longrepr = printable(said)
    elif isinstance(said, ExceptionChainRepr | ReprExceptionInfo):
        if said.reprcrash:
            said.reprcrash.message = printable(said.reprcrash.message)
        chain = [part[0] for part in said.chain] if isinstance(said, ExceptionChainRepr) else []
        for traceback in (said.reprtraceback, *chain):
            _clean(traceback)
    report.sections = [(name, printable(text)) for name, text in report.sections]
    return report


def _clean(traceback: ReprTraceback) -> None:
    for entry in traceback.reprentries:
        entry.lines = [printable(line) for line in entry.lines]
