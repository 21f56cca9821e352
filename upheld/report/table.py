"""The table of a run: guarantees down, designs across."""

from collections.abc import Collection, Mapping

from rich.table import Table
from rich.text import Text

from upheld.protocol.limits import Limit
from upheld.report.matrix import Cell, Matrix
from upheld.verdicts import Verdict

NOT_JUDGED = "-"
PROMISE_CHARS = 24  # at least, beside long names of designs
COLOURS = {
    Verdict.UPHELD: "green",
    Verdict.VIOLATED: "red",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.UNSUPPORTED: "dim",
    Verdict.HARNESS_ERROR: "magenta",
}


def table(found: Matrix, cannot: Mapping[str, Collection[str]] | None = None) -> Table:
    """Return the table of guarantees and designs.

    If a design declares limits, a column says which of them takes from which guarantee.

    Args:
        found: What was judged.
        cannot: Design -> the limits that it declares.
    """
    limits = {design: named for design, named in (cannot or {}).items() if named}
    grid = Table(title=None, pad_edge=False)
    grid.add_column("guarantee", no_wrap=True)
    grid.add_column("promise", ratio=1, min_width=PROMISE_CHARS)
    for column in found.columns:
        grid.add_column(found.head(column), no_wrap=True)
    if limits:
        grid.add_column("cannot", overflow="fold")
    for line in found.lines:
        taken = [_taken(line.guarantee, limits, len(found.columns) > 1)] if limits else []
        grid.add_row(line.guarantee, line.promise, *map(_cell, line.cells), *taken)
    return grid


def _taken(guarantee: str, limits: Mapping[str, Collection[str]], is_named: bool) -> str:
    """Return the limits that take rows from a guarantee, with their designs if there are more."""
    return ", ".join(
        f"{design} {limit}" if is_named else limit
        for design, named in limits.items()
        for limit in Limit
        if limit in named and guarantee in limit.guarantees
    )


def _cell(cell: Cell | None) -> Text:
    """Return the worst verdict with its share of the rows; a dash without rows."""
    if cell is None:
        return Text(NOT_JUDGED, style="dim")
    return Text(str(cell), style=COLOURS[cell.worst])
