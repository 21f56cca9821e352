"""The card of a failing row, with the command that repeats it."""

from collections.abc import Iterator

from upheld.report.model import RowResult
from upheld.report.oracles import catches, rests_on
from upheld.text import visible
from upheld.verdicts import Anomaly

ANOMALIES_SHOWN = 3


def card(row: RowResult, reproduce: str) -> str:
    """Return the card of a failing row, as lines of text.

    It says which scenario failed, with which anomaly on which record, and how to see it again.

    Args:
        row: The result of the row.
        reproduce: The command that shows it again.
    """
    lines = [f"{row.verdict.upper()}  {row.id}  {row.design}", f"  claim     {row.name}"]
    if row.lapsed and row.known is None:
        lines.append(f"  waiver    {row.lapsed}")
    for mark in row.marks:
        lines.append(f"  mark      {mark.get('fault', 'without a name')}")
    if not row.anomalies and row.reason:
        lines.append(f"  reason    {row.reason}")
    for anomaly in row.anomalies[:ANOMALIES_SHOWN]:
        lines += [f"  {line}" for line in anomaly_lines(anomaly)]
    if sum(row.totals.values()) > ANOMALIES_SHOWN:
        lines.append(
            "  in all    " + ", ".join(f"{count} {name}" for name, count in row.totals.items())
        )
    for label, shown in (
        ("rests on", list(filter(None, [rests_on(row), catches(row)]))),
        ("versions", [versions(row)] if row.narrowed else []),
        ("shrunk", row.shrunk),
        ("timeline", row.timeline),
        ("log", row.log),
    ):
        lines += [
            f"  {label if number == 0 else '':<9} {line}" for number, line in enumerate(shown)
        ]
    if row.history:
        lines.append(f"  history   {row.history}")
    if row.picture:
        lines.append(f"  picture   {row.picture}")
    lines.append(f"  again     {reproduce}")
    return "\n".join(map(visible, lines))


def anomaly_lines(anomaly: Anomaly) -> Iterator[str]:
    """Go through the lines of an anomaly: what is wrong, and where it shows."""
    yield f"anomaly   {anomaly.name}: {anomaly.text}"
    for label, value in (
        ("key", anomaly.key),
        ("input", anomaly.source),
        ("expected", anomaly.expected),
        ("got", anomaly.got),
    ):
        if value:
            yield f"  {label:<9} {value}"


def versions(row: RowResult) -> str:
    """Return the versions that the proxy narrowed for a row; empty if there are none."""
    return f"through the proxy {', '.join(row.narrowed)}" if row.narrowed else ""
