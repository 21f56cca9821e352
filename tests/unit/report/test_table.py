"""The table has a column for limits if a design declares one."""

import io

from reports import summary

from upheld.protocol.limits import Limit
from upheld.report import RowResult, matrix, table
from upheld.ui.console import PlainConsole
from upheld.verdicts import Verdict

PROMISES = {"G39": "No reader waits.", "G44": "New partitions are read."}


def row(guarantee: str, design: str = "mine") -> RowResult:
    """Return a result of that guarantee."""
    return RowResult(
        design=design,
        id=f"{guarantee}.a[relay-exactly_once]",
        guarantee=guarantee,
        name="claim",
        verdict=Verdict.UNSUPPORTED,
        seconds=1.0,
    )


def shown(rows: list[RowResult], cannot: dict[str, list[str]]) -> list[str]:
    """Return the lines of a table."""
    said = io.StringIO()
    console = PlainConsole(file=said)
    console.width = 120
    console.print(table(matrix([(rows, summary())], PROMISES), cannot))
    return said.getvalue().splitlines()


def test_the_column_says_which_limit_takes_the_promise() -> None:
    """Only the limit that a guarantee suffers from stands beside it."""
    lines = shown([row("G39"), row("G44")], {"mine": [Limit.NEW_PARTITIONS]})

    assert "cannot" in lines[1]
    assert Limit.NEW_PARTITIONS not in next(line for line in lines if "G39" in line)
    assert Limit.NEW_PARTITIONS in next(line for line in lines if "G44" in line)


def test_of_several_designs_each_has_its_name() -> None:
    """A reader of two columns of verdicts knows whose limit it is."""
    lines = shown([row("G44"), row("G44", "other")], {"other": [Limit.NEW_PARTITIONS]})

    assert f"other {Limit.NEW_PARTITIONS}" in "\n".join(lines)


def test_without_limits_there_is_no_column() -> None:
    """The table of most designs is as it was."""
    assert "cannot" not in "\n".join(shown([row("G44")], {"mine": []}))
