"""The evidence of a violation, as a card shows it.

It has three parts: the timeline, the telling lines of the instances' logs, and the few records that
are enough for the anomaly.
"""

from collections.abc import Iterator
from pathlib import Path

from upheld.history import History
from upheld.history.events import Instance, Mark
from upheld.judging.shrink import shrink
from upheld.report import RowResult
from upheld.report.folder import LOGS, named_in
from upheld.report.logs import last_lines
from upheld.report.timeline import drawn, lanes, picture


def illustrate(
    history: History, result: RowResult, path: Path, drawing: Path | None, seconds: float
) -> None:
    """Add timeline, last log lines and shrunk records to a result.

    Args:
        history: The history of the row.
        result: The result, which is changed.
        path: The history's file, which lies in a folder of the run's.
        drawing: Where to write the timeline as SVG; nowhere if it is None.
        seconds: How long to look for the records that show the first anomaly.

    Raises:
        OSError: The drawing cannot be written.
    """
    found = lanes(history, result.anomalies)
    result.timeline = list(drawn(found))
    result.log = list(last_words(history, path.absolute().parent.parent))
    if result.anomalies and (shrunk := shrink(history, result.anomalies[0], seconds)):
        result.shrunk = list(shrunk.lines())
    if drawing:
        drawing.write_text(
            picture(found, f"{result.verdict}  {result.id}  {result.design}"), encoding="utf-8"
        )


def last_words(history: History, out: Path) -> Iterator[str]:
    """Go through the lines of each log around the last fault, and its last ones.

    A log is a file of a folder `logs` below that folder: a history that names another path shows
    nothing of it. An older history names a log by its name alone.
    """
    faults = [mark.logs for mark in history.of(Mark) if mark.code and mark.logs]
    sizes = faults[-1] if faults else {}
    for name, log in dict.fromkeys(
        (e.name, e.detail) for e in history.of(Instance) if e.event == "started"
    ):
        if file := _log_in(out, log):
            yield from (f"{name}  {line}" for line in last_lines(file, at=sizes.get(log)))


def _log_in(out: Path, log: str) -> Path | None:
    path = Path(log)
    if path.name == log:
        return named_in(out / LOGS, log)
    return named_in(out, log) if path.parent.name == LOGS else None
