"""A report as workflow commands of GitHub Actions, which it shows beside a change.

Source: "Workflow commands for GitHub Actions", which also says what is escaped.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from upheld.report.card import card
from upheld.report.model import RowResult
from upheld.verdicts import Verdict

LEVELS: Final = {Verdict.INCONCLUSIVE: "warning", Verdict.HARNESS_ERROR: "error"}


def annotations(rows: Iterable[RowResult]) -> Iterator[str]:
    """Go through the commands, one for each row that fails the run or proves nothing."""
    for row in rows:
        level = "error" if row.fails else LEVELS.get(row.verdict)
        if level:
            title = _property(f"{row.verdict} {row.id} {row.design}")
            yield f"::{level} title={title}::{_data(card(row, row.again))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
