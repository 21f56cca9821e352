"""Reports side by side: guarantees down, and a column for each design of each run."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from upheld.report.model import RowResult, Summary
from upheld.verdicts import Verdict

MINUTE_CHARS: Final = 16  # of a time in ISO 8601, up to its minute


class Column(NamedTuple):
    """A design as one run judged it.

    Attributes:
        design: Its name.
        version: Its version; empty in a report that does not say it.
        when: When that run ended, in UTC and ISO 8601; empty in a report before format 7.
        subject: The digest of what was judged; empty if it is unknown.
    """

    design: str
    version: str
    when: str
    subject: str = ""

    def __str__(self) -> str:
        """Return the name and the version, for the head of a column."""
        return f"{self.design} {self.version}".rstrip()


class Judged(NamedTuple):
    """A row, with the numbers of its report and of its column, from 0."""

    row: RowResult
    report: int
    column: int


@dataclass(frozen=True)
class Cell:
    """The verdicts of the rows of a guarantee.

    Attributes:
        verdicts: How many rows have which verdict; none of them is 0.
    """

    verdicts: Mapping[Verdict, int]

    @property
    def worst(self) -> Verdict:
        """Return the worst verdict."""
        return min(self.verdicts, key=list(Verdict).index)

    def __str__(self) -> str:
        """Return the worst verdict, and how many of the rows have it: `violated 1/3`."""
        return f"{self.worst} {self.verdicts[self.worst]}/{sum(self.verdicts.values())}"


@dataclass(frozen=True)
class Line:
    """A guarantee, with its cell in each column; None where no row was judged."""

    guarantee: str
    promise: str
    cells: tuple[Cell | None, ...]

    @property
    def differs(self) -> bool:
        """Whether the columns that judged it disagree on the worst verdict."""
        return len({cell.worst for cell in self.cells if cell}) > 1


@dataclass(frozen=True)
class Matrix:
    """The lines of reports; of several reports, those whose columns differ come first."""

    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    judged: tuple[Judged, ...]  # the rows of all reports, in their order
    summaries: tuple[Summary, ...]

    @property
    def rows(self) -> tuple[RowResult, ...]:
        """The rows of all reports, in their order."""
        return tuple(each.row for each in self.judged)

    def reports(self) -> Iterator[tuple[list[RowResult], Summary]]:
        """Go through the rows and the summary of each report."""
        for number, summary in enumerate(self.summaries):
            yield [each.row for each in self.judged if each.report == number], summary

    def head(self, column: Column) -> str:
        """Return the head of a column: with version and date, if there are several runs."""
        if len(self.summaries) == 1:
            return column.design
        minute = column.when[:MINUTE_CHARS].replace("T", " ")
        return "\n".join(filter(None, [str(column), minute and f"{minute} UTC"]))


def matrix(
    reports: Sequence[tuple[list[RowResult], Summary]], promises: Mapping[str, str]
) -> Matrix:
    """Return the matrix of reports.

    Args:
        reports: The rows and the summary of each.
        promises: Id of a guarantee -> its promise, in the order of the lines.
    """
    columns = list[Column]()
    cells = list[Mapping[str, Cell]]()
    judged = list[Judged]()
    for report, (rows, summary) in enumerate(reports):
        numbers = dict[str, int]()
        for design in dict.fromkeys(row.design for row in rows):
            numbers[design] = len(columns)
            version = summary.design_versions.get(design, "")
            subject = summary.subjects.get(design, "")
            columns.append(Column(design, version, summary.ended, subject))
            cells.append(_cells(row for row in rows if row.design == design))
        judged += [Judged(row, report, numbers[row.design]) for row in rows]
    lines = list(_lines(cells, promises))
    if len(reports) > 1:
        lines.sort(key=lambda line: not line.differs)
    summaries = tuple(summary for _, summary in reports)
    return Matrix(tuple(columns), tuple(lines), tuple(judged), summaries)


def as_data(found: Matrix) -> dict[str, object]:
    """Return a matrix as lists and tables, for JSON."""
    return {
        "columns": [column._asdict() for column in found.columns],
        "guarantees": list(_lines_as_data(found)),
    }


def _lines_as_data(found: Matrix) -> Iterator[dict[str, object]]:
    for line in found.lines:
        cells = [dict(cell.verdicts) if cell else None for cell in line.cells]
        yield {
            "id": line.guarantee,
            "promise": line.promise,
            "differs": line.differs,
            "verdicts": cells,
        }


def _cells(rows: Iterable[RowResult]) -> Mapping[str, Cell]:
    found = defaultdict[str, Counter[Verdict]](Counter)
    for row in rows:
        found[row.guarantee][row.verdict] += 1
    return {guarantee: Cell(verdicts) for guarantee, verdicts in found.items()}


def _lines(cells: Sequence[Mapping[str, Cell]], promises: Mapping[str, str]) -> Iterator[Line]:
    judged = dict.fromkeys(guarantee for column in cells for guarantee in column)
    known = [name for name in promises if name in judged]
    others = [name for name in judged if name not in promises]  # of a newer or older catalogue
    for guarantee in known + others:
        yield Line(
            guarantee,
            promises.get(guarantee, ""),
            tuple(column.get(guarantee) for column in cells),
        )
