"""A report as workflow commands of GitHub Actions, which it shows beside a change.

Source: "Workflow commands for GitHub Actions", which also says what is escaped.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from upheld.report.card import card
from upheld.report.model import RowResult
from upheld.text import visible
from upheld.verdicts import Verdict

LEVELS: Final = {Verdict.INCONCLUSIVE: "warning", Verdict.HARNESS_ERROR: "error"}


def annotations(rows: Iterable[RowResult], hints: Iterable[str] = ()) -> Iterator[str]:
    """Go through the commands: of rows that fail or prove nothing, and of hints."""
    for row in rows:
        if row.excused:
            continue
        level = "error" if row.fails else LEVELS.get(row.verdict)
        if level:
            title = _property(f"{row.verdict} {row.id} {row.design}")
            yield f"::{level} title={title}::{_data(card(row, row.again))}"
    for hint in hints:
        yield f"::notice title=upheld::{_data(visible(hint))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
