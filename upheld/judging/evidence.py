"""The evidence of a violation, as a card shows it.

It has three parts: the timeline, the last lines of the instances' logs, and the few records that
are enough for the anomaly.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from upheld.history import History
from upheld.history.events import Instance
from upheld.judging.shrink import shrink
from upheld.report import RowResult
from upheld.report.timeline import drawn, lanes, picture
from upheld.text import visible

LOG_LINES = 4  # of each instance
LOG_COLUMNS = 130
LOG_BYTES = 1 << 13  # of the log's end, in which the last lines are looked for
SECRET = re.compile(r"((?:password|secret|token|credential)[^\s=:]*\s*[=:]\s*)\S+", re.IGNORECASE)
HIDDEN = r"\1…"


def illustrate(
    history: History, result: RowResult, path: Path, drawing: Path | None, seconds: float
) -> None:
    """Add timeline, last log lines and shrunk records to a result.

    Args:
        history: The history of the row.
        result: The result, which is changed.
        path: The history's file; the logs lie beside its folder.
        drawing: Where to write the timeline as SVG; nowhere if it is None.
        seconds: How long to look for the records that show the first anomaly.

    Raises:
        OSError: The drawing cannot be written.
    """
    found = lanes(history, result.anomalies)
    result.timeline = list(drawn(found))
    result.log = list(last_words(history, path.absolute().parent.parent / "logs"))
    if result.anomalies and (shrunk := shrink(history, result.anomalies[0], seconds)):
        result.shrunk = list(shrunk.lines())
    if drawing:
        drawing.write_text(
            picture(found, f"{result.verdict}  {result.id}  {result.design}"), encoding="utf-8"
        )


def last_words(history: History, logs: Path) -> Iterator[str]:
    """Go through the last lines that each instance wrote to its log, if it has one."""
    for name, log in dict.fromkeys(
        (e.name, e.detail) for e in history.of(Instance) if e.event == "started"
    ):
        with suppress(OSError), (logs / log).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LOG_BYTES))
            lines = [
                line for line in file.read().decode(errors="replace").splitlines() if line.strip()
            ]
            for line in lines[-LOG_LINES:]:
                yield f"{name}  {SECRET.sub(HIDDEN, visible(line))[:LOG_COLUMNS]}"
