"""Make the durations that the package ships from the reports of whole runs.

python tools/durations.py REPORT.jsonl…

A row's duration is the median over the reports. If a design or a row is in no report, the file
keeps its old duration. A row that the catalogue does not have any more is dropped. A report may be
cut: its whole lines count.
"""

import argparse
import json
import os
import statistics
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from upheld.errors import Problem, UsageProblem
from upheld.report import RowResult
from upheld.spec import catalogue, durations
from upheld.spec.durations import Durations, Recorded
from upheld.verdicts import Reason, Verdict

JUDGED = (Verdict.UPHELD, Verdict.UNSUPPORTED, Verdict.VIOLATED)


class Observed(NamedTuple):
    """One row of a report."""

    design: str
    row_id: str
    seconds: float
    is_first: bool  # of its design, in its lane: the design's boot is in it
    is_unsupported: bool


def observed(report: Path) -> Iterator[Observed]:
    """Read the rows of a report that were judged in one attempt."""
    begun = set[tuple[str, str]]()
    for row in rows(report):
        place = row.design, row.history.partition("history/")[0]
        if row.history:
            is_first = place not in begun
            begun.add(place)
        else:
            is_first = False
        is_usual = row.verdict in JUDGED and row.attempts == 1 and row.known is None
        if is_usual and row.code is not Reason.MACHINE_LACKS:
            is_unsupported = row.verdict is Verdict.UNSUPPORTED
            yield Observed(row.design, row.id, row.seconds, is_first, is_unsupported)


def rows(report: Path) -> Iterator[RowResult]:
    """Read the whole lines of a report.

    Raises:
        UsageProblem: A line is no row, or the report cannot be read.
    """
    try:
        lines = report.read_bytes().splitlines(keepends=True)
        found = [json.loads(line) for line in lines if line.endswith(b"\n")]
        yield from (RowResult(**line) for line in found if line.pop("kind") == "row")
    except OSError as error:
        raise UsageProblem(f"{report} cannot be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError, AttributeError, ValidationError):
        raise UsageProblem(f"{report} is no report of a run.") from None


def recorded(found: Iterable[Observed]) -> Recorded:
    """Return the medians of one design.

    A row that came first in a run counts only if it never came later.
    """
    later: dict[str, list[float]] = defaultdict(list)
    first: dict[str, list[float]] = defaultdict(list)
    declined: dict[str, list[float]] = defaultdict(list)
    for row in found:
        kind = declined if row.is_unsupported else first if row.is_first else later
        kind[row.row_id].append(row.seconds)
    alike: dict[str, list[float]] = defaultdict(list)
    for row_id, seconds in later.items():
        alike[row_id.partition("[")[0]] += seconds
    boots: list[float] = []
    for row_id, seconds in first.items():
        others = later.get(row_id) or alike.get(row_id.partition("[")[0])
        if others:
            boots += [max(0.0, each - statistics.median(others)) for each in seconds]
    boot_s = statistics.median(boots) if boots else 0.0
    rows_s = {row_id: statistics.median(seconds) for row_id, seconds in later.items()}
    for row_id, seconds in first.items():
        rows_s.setdefault(row_id, max(0.0, statistics.median(seconds) - boot_s))
    return Recorded(
        boot_s=round(boot_s, 2),
        rows_s={row_id: round(seconds, 2) for row_id, seconds in rows_s.items()},
        unsupported_s={
            row_id: round(statistics.median(seconds), 2)
            for row_id, seconds in declined.items()
            if row_id not in rows_s
        },
    )


def merged(older: Durations, reports: Iterable[Path]) -> Durations:
    """Return the older durations with those of the reports in their place."""
    by_design: dict[str, list[Observed]] = defaultdict(list)
    for report in reports:
        for row in observed(report):
            by_design[row.design].append(row)
    known = catalogue.load().by_row
    designs = dict(older.designs)
    for design, found in by_design.items():
        new = recorded(found)
        kept = designs.get(design, Recorded(rows_s={}))
        designs[design] = Recorded(
            boot_s=new.boot_s or kept.boot_s,
            rows_s=_newer(kept.rows_s, new.rows_s, known.keys() - new.unsupported_s),
            unsupported_s=_newer(kept.unsupported_s, new.unsupported_s, known.keys() - new.rows_s),
        )
    return Durations(designs=dict(sorted(designs.items())))


def _newer(
    older: dict[str, float], newer: dict[str, float], known: Collection[str]
) -> dict[str, float]:
    """Return the newer seconds, and of the older ones what the newer lack; known rows only."""
    return {
        row_id: seconds for row_id, seconds in sorted((older | newer).items()) if row_id in known
    }


def write(made: Durations, path: Path) -> None:
    """Replace the file whole, or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(made.model_dump_json(indent=1) + "\n", encoding="utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def main(arguments: list[str]) -> int:
    """Make the file from the reports named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("reports", nargs="+", type=Path, metavar="REPORT.jsonl")
    reports: list[Path] = parser.parse_args(arguments).reports
    try:
        older = durations.load() if durations.FILE.exists() else Durations()
        made = merged(older, reports)
    except Problem as problem:
        print(problem, file=sys.stderr)
        return problem.exit_code
    write(made, durations.FILE)
    for name, design in made.designs.items():
        total_s = sum(design.rows_s.values())
        print(f"{name}: {len(design.rows_s)} rows, {total_s:.0f} s, boots in {design.boot_s:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
