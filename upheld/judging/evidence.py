"""What is shown of a violation: its timeline, the last words of its instances, the records that are
enough for it.
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

LOG_LINES, LOG_COLUMNS, LOG_BYTES = 4, 130, 1 << 13
SECRET = re.compile(r"((?:password|secret|token|credential)[^\s=:]*\s*[=:]\s*)\S+", re.IGNORECASE)
HIDDEN = r"\1…"


def illustrate(
    history: History, result: RowResult, path: Path, drawing: Path | None, seconds: float
) -> None:
    """Add to a result what happened when, as SVG too if there is a place for it, the last words of
    its logs, which lie beside the history's folder, and the records that show its first anomaly,
    looked for so long. OSError where it cannot be drawn.
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
    """The last lines that each instance wrote to its log, where there are any."""
    for name, log in dict.fromkeys(
        (e.name, e.detail) for e in history.of(Instance) if e.event == "started"
    ):
        with suppress(OSError), (logs / log).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LOG_BYTES))
            lines = [
                line for line in file.read().decode(errors="replace").splitlines() if line.strip()
            ]
            yield from (
                f"{name}  {SECRET.sub(HIDDEN, line)[:LOG_COLUMNS]}" for line in lines[-LOG_LINES:]
            )
