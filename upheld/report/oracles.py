"""The words for what a verdict rests on: its oracle, and what of it was judged."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator

from upheld.report.model import RowResult
from upheld.report.reasons import few
from upheld.text import visible

PROGRAM = "program"  # the model of a shipped program, which knows all that a row can ask


def rests_on(row: RowResult) -> str:
    """Return the oracle of a row and what it was asked.

    It is empty if a shipped program's model judged it, or nothing did.
    """
    if row.oracle in {"", PROGRAM} or not (row.rests_on or row.lacks):
        return ""
    lacks = f"no {', no '.join(row.lacks)}" if row.lacks else ""
    asked = ", ".join(row.rests_on)
    return f"{row.oracle}: {'; '.join(filter(None, [asked, lacks]))}"


def catches(row: RowResult) -> str:
    """Return how many wrong designs a row catches with its oracle.

    It is empty for the model of a shipped program, and if nobody measured it.
    """
    if row.power is None or not rests_on(row):
        return ""
    return f"the row catches {row.power} wrong designs"


def resting(rows: Iterable[RowResult]) -> Iterator[str]:
    """Go through the lines below a table: how many verdicts rest on what."""
    counts = Counter(rests for row in rows if (rests := rests_on(row)))
    if counts:
        each = "; ".join(f"{number} on {rests}" for rests, number in counts.items())
        yield visible(f"verdicts rest: {each}")


def weaker(rows: Iterable[RowResult], required: Collection[str]) -> list[str]:
    """Return what `--require` says of rows whose oracle lacks what they ask for."""
    found = defaultdict[str, dict[str, None]](dict)
    for row in rows:
        for part in required:
            if part in row.lacks:
                found[f"--require {part}: {row.design} is judged by {row.oracle} without it"][
                    row.id
                ] = None
    return [visible(f"{said}: {few(list(ids))}") for said, ids in found.items()]
