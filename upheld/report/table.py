"""The table of a run: guarantees down, designs across."""

from collections import defaultdict
from collections.abc import Collection, Mapping

from rich.table import Table
from rich.text import Text

from upheld.protocol.limits import Limit
from upheld.report.model import RowResult
from upheld.verdicts import Verdict

NOT_JUDGED = "-"
COLOURS = {
    Verdict.UPHELD: "green",
    Verdict.VIOLATED: "red",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.UNSUPPORTED: "dim",
    Verdict.HARNESS_ERROR: "magenta",
}


def table(
    rows: list[RowResult],
    promises: dict[str, str],
    cannot: Mapping[str, Collection[str]] | None = None,
) -> Table:
    """Return the table of guarantees and designs.

    A cell is the worst verdict of its rows, and the number of rows that have it, of how many. If a
    design declares limits, a column says which of them takes from which guarantee.

    Args:
        rows: The results of the run.
        promises: Id of a guarantee -> its promise, in the order of the table.
        cannot: Design -> the limits that it declares.
    """
    limits = {design: named for design, named in (cannot or {}).items() if named}
    designs = list(dict.fromkeys(row.design for row in rows))
    grid = Table(title=None, pad_edge=False)
    grid.add_column("guarantee", no_wrap=True)
    grid.add_column("promise", ratio=1)
    for design in designs:
        grid.add_column(design, no_wrap=True)
    if limits:
        grid.add_column("cannot", overflow="fold")
    found = defaultdict[tuple[str, str], list[Verdict]](list)
    for row in rows:
        found[row.guarantee, row.design].append(row.verdict)
    for guarantee, promise in promises.items():
        cells = [_cell(found.get((guarantee, design), [])) for design in designs]
        if any(str(cell) != NOT_JUDGED for cell in cells):
            taken = [_taken(guarantee, limits, len(designs) > 1)] if limits else []
            grid.add_row(guarantee, promise, *cells, *taken)
    return grid


def _taken(guarantee: str, limits: Mapping[str, Collection[str]], is_named: bool) -> str:
    """Return the limits that take rows from a guarantee, with their designs if there are more."""
    return ", ".join(
        f"{design} {limit}" if is_named else limit
        for design, named in limits.items()
        for limit in Limit
        if limit in named and guarantee in limit.guarantees
    )


def _cell(verdicts: list[Verdict]) -> Text:
    """Return the worst verdict with its share of the rows; a dash without rows."""
    if not verdicts:
        return Text(NOT_JUDGED, style="dim")
    worst = min(verdicts, key=list(Verdict).index)
    return Text(f"{worst} {verdicts.count(worst)}/{len(verdicts)}", style=COLOURS[worst])
