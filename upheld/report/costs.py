"""The cost of all rows of a design, for the page."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from upheld.report.matrix import Matrix
from upheld.report.model import RowResult

UNKNOWN: Final = "unknown"


class Part(NamedTuple):
    """One cost, and how that of several rows is made of those of each.

    Attributes:
        label: What the page calls it.
        unit: The unit; empty of a number.
        name: The field of a row, or of its cost.
        total: Makes one of several.
    """

    label: str
    unit: str
    name: str
    total: Callable[[Iterable[float]], float]

    def of(self, rows: Iterable[RowResult]) -> str:
        """Return the cost of rows with its unit, of those whose cost is known."""
        of_rows = [getattr(row, self.name, getattr(row.cost, self.name, None)) for row in rows]
        known = [each for each in of_rows if each is not None]
        return f"{self.total(known):,.0f} {self.unit}".rstrip() if known else UNKNOWN


PARTS: Final = (
    Part("seconds", "s", "seconds", sum),
    Part("CPU of the design", "s", "design_cpu_s", sum),
    Part("CPU of the broker", "s", "broker_cpu_s", sum),
    Part("CPU of the harness", "s", "harness_cpu_s", sum),
    Part("most memory of an instance", "MiB", "peak_memory_mb", max),
    Part("topics", "", "topics", sum),
    Part("bytes on the broker", "", "topic_bytes", sum),
)


def costs(found: Matrix) -> Iterator[tuple[str, list[str]]]:
    """Go through the parts of the cost, each with that of every column."""
    columns = range(len(found.columns))
    rows = [[each.row for each in found.judged if each.column == column] for column in columns]
    for part in PARTS:
        yield part.label, [part.of(own) for own in rows]
