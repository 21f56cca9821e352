"""The reasons why rows are unsupported, each with the rows that it concerns."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from upheld.history.marks import Happening
from upheld.report.model import RowResult
from upheld.text import visible
from upheld.verdicts import Reason, Verdict

ROWS_NAMED: Final = 3  # of those that something is said of
# The manifest of the design says it, so that nobody who reads the manifest is surprised.
DECLARED: Final = frozenset({Reason.NOT_OFFERED, Reason.CANNOT})


def unsupported(rows: Iterable[RowResult]) -> Iterator[str]:
    """Go through the reasons why rows are unsupported, each with its rows."""
    for reason, ids in _by_reason(rows).items():
        yield visible(f"unsupported, since {reason}: {few(ids)}")


def shortened(rows: Iterable[RowResult]) -> Iterator[str]:
    """Go through the timeouts that the proxy has shortened, each with its designs."""
    found = defaultdict[str, dict[str, None]](dict)
    for row in rows:
        for mark in row.marks:
            if mark.get("happening") == Happening.TIMEOUT_SHORTENED:
                found[str(mark["fault"])][row.design] = None
    for said, designs in found.items():
        yield visible(f"{', '.join(designs)}: {said}; --timeouts deployed leaves it")


def undeclared(rows: Iterable[RowResult]) -> Iterator[str]:
    """Go through what `--strict` says of unsupported rows that no manifest declares."""
    for reason, ids in _by_reason(row for row in rows if row.code not in DECLARED).items():
        yield visible(f"--strict: unsupported and nowhere declared, since {reason}: {few(ids)}")


def pinned(specs: Mapping[str, str], newer: Mapping[str, list[str]]) -> Iterator[str]:
    """Go through what a run says of designs that pin an older version.

    Args:
        specs: Design -> the version that it pins.
        newer: Design -> the ids of the rows.
    """
    for design, ids in newer.items():
        if ids:
            rows = f"{len(ids)} row{'s' * (len(ids) != 1)}"
            pin = f"{design} pins spec {specs.get(design, '')}".rstrip()
            yield visible(f"new, and not judged since {pin}: {rows}, {few(ids)}")


def _by_reason(rows: Iterable[RowResult]) -> Mapping[str, list[str]]:
    """Return the unsupported rows by their reason, each once."""
    found = defaultdict[str, dict[str, None]](dict)
    for row in rows:
        if row.verdict is Verdict.UNSUPPORTED:
            found[row.reason][row.id] = None
    return {reason: list(ids) for reason, ids in found.items()}


def few(names: list[str]) -> str:
    """Name the first of these, and count the others."""
    others = f" and {len(names) - ROWS_NAMED} others" if len(names) > ROWS_NAMED else ""
    return f"{', '.join(names[:ROWS_NAMED])}{others}"
