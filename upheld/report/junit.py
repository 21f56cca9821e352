"""`junit.xml`, made of a report: what a CI system shows of a run.

A suite is a design, and a case is a row: its class is the guarantee, its name the row's id.
"""

import io
from collections.abc import Iterable
from typing import Final

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from upheld.report.baseline import excuse
from upheld.report.card import card
from upheld.report.model import RowResult, Summary
from upheld.text import printable
from upheld.verdicts import Verdict

RUN: Final = "the run"  # the name of a case for what is of no row

Result = Failure | Error | Skipped


def text(
    reports: Iterable[tuple[list[RowResult], Summary]],
    errors: Iterable[str],
    hints: Iterable[str] = (),
) -> str:
    """Return the text of `junit.xml`.

    Args:
        reports: The rows and the summary of each report.
        errors: What failed outside of all rows.
        hints: What a reader of the verdicts has to know beside them.
    """
    whole = JUnitXml("upheld")
    for rows, summary in reports:
        for design in summary.chosen:
            whole.append(_suite(design, rows, summary))
    if broken := [_broken(text) for text in errors]:
        suite = TestSuite(RUN)
        suite.add_testcases(broken)
        whole.append(suite)
    if first := next(iter(whole), None):
        for hint in hints:
            first.add_property("hint", printable(hint))
    whole.update_statistics()
    written = io.BytesIO()
    whole.write(written, pretty=True)
    return written.getvalue().decode()


def _suite(design: str, rows: Iterable[RowResult], summary: Summary) -> TestSuite:
    suite = TestSuite(printable(design))
    said = {
        "seed": str(summary.seed),
        "broker": summary.broker,
        "upheld": summary.upheld,
        "depth": summary.depth,
        "version": summary.design_versions.get(design, ""),
        "subject": summary.subjects.get(design, ""),
    }
    for name, value in said.items():
        suite.add_property(name, printable(value))
    for row in rows:
        if row.design == design:
            suite.add_testcase(_case(row, is_one_of_many=summary.repeat > 1))
    return suite


def _case(row: RowResult, *, is_one_of_many: bool) -> TestCase:
    name = f"{row.id} #{row.repetition + 1}" if is_one_of_many else row.id
    case = TestCase(printable(name), classname=printable(row.guarantee), time=row.seconds)
    if result := _result(row):
        case.result = [result]
    if row.warnings:
        case.system_out = printable("\n".join(row.warnings))
    return case


def _result(row: RowResult) -> Result | None:
    """Return what a row is to a CI system beside passed.

    A known failure, a row that was as bad in the baseline and an unsupported row are skipped.
    Whatever proves nothing is an error.
    """
    if row.verdict is Verdict.UNSUPPORTED:
        return Skipped(printable(row.reason))
    if row.excused:
        return Skipped(printable(excuse(row)))
    if row.known is not None and not row.fails:
        return Skipped(printable(f"known failure: {row.known}"))
    if row.verdict is Verdict.UPHELD:
        return _upheld_at_last(row) if row.fails else None
    said = row.anomalies[0] if row.anomalies else None
    message = f"{said.name}: {said.text}" if said else row.reason
    kind = Failure if row.verdict is Verdict.VIOLATED else Error
    result = kind(printable(message), said.name if said else str(row.verdict))
    result.text = printable(card(row, row.again))
    return result


def _upheld_at_last(row: RowResult) -> Failure:
    return Failure(printable(f"the known failure {row.known} is upheld: take it off the list"))


def _broken(text: str) -> TestCase:
    case = TestCase(RUN)
    result = Error(printable(text.strip().splitlines()[-1] if text.strip() else RUN))
    result.text = printable(text)
    case.result = [result]
    return case
