"""The report of a run: one JSON line a row while it runs, then a summary, a table, and the exit
code that follows.
"""

import errno
import json
import os
import statistics
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError
from rich.table import Table
from rich.text import Text

from upheld.errors import UsageProblem
from upheld.verdicts import Anomaly, Reason, Verdict

# Of report.jsonl. Format 3 has no codes of reasons; format 2 calls the version by the package's
# former name; format 1, which has no number, has no depths and shards either.
FORMAT = 4
DEPTHS_SINCE = 2
COLOURS = {
    Verdict.UPHELD: "green",
    Verdict.VIOLATED: "red",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.UNSUPPORTED: "dim",
    Verdict.HARNESS_ERROR: "magenta",
}


class Cost(BaseModel):
    """What one row took, all its attempts together; what cannot be known is None."""

    model_config = ConfigDict(extra="forbid")

    harness_cpu_s: float
    broker_cpu_s: float | None = None
    design_cpu_s: float
    peak_memory_mb: int | None = (
        None  # of an instance's processes together, each at its own peak since it began
    )
    topics: int | None = None  # the last attempt's, those of the design's own too
    topic_bytes: int | None = None


class RowResult(BaseModel):
    """What one row of one design came to."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["row"] = "row"
    design: str
    id: str
    guarantee: str
    name: str
    repetition: int = 0
    verdict: Verdict
    code: Reason | None = None  # the kind of the reason; `reason` is its text
    reason: str = ""
    known: str | None = None
    anomalies: list[Anomaly] = []  # the worst ones, worst first
    totals: dict[str, int] = {}  # of all of them, by name
    marks: list[dict[str, Any]] = []
    timeline: list[str] = []  # of a violated row, as `report.timeline` draws it
    log: list[str] = []  # the last lines of each of its instances
    shrunk: list[str] = []  # the records that are enough for its first anomaly
    attempts: int = 1
    kills: int = 0
    entries: int = 0
    keys: int = 0
    partitions: int = 0
    waited_seconds: float = 0.0
    # Of what arrived all along: the share of it that was visible by then.
    waited_ms: dict[str, int] = {}
    seconds: float
    cost: Cost | None = None
    history: str = ""
    picture: str = ""

    @property
    def fails(self) -> bool:
        """Whether this row alone fails the run: a new violation, or a known failure that is none
        any more.
        """
        return (self.verdict is Verdict.VIOLATED) != (self.known is not None) and self.verdict in {
            Verdict.VIOLATED,
            Verdict.UPHELD,
        }


class Summary(BaseModel):
    """The end of a run, and what it ran on."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["summary"] = "summary"
    format: int = 1
    partial: bool
    upheld: str = Field(validation_alias=AliasChoices("upheld", "streamgate"))
    seed: int
    depth: str = "full"
    slice: str = ""  # of what the depth leaves out, such as 3/8
    shard: str = ""  # of what was chosen, such as 2/4
    shards: int = 0  # how many reports of shards it was made of
    repeat: int = 1
    design_versions: dict[str, str] = {}
    broker: str
    broker_why: str
    versions: dict[str, str]
    promised: dict[str, int]  # rows of each design, at full depth
    # Of these, those that depth, slice, shard and options choose, each as often as it is repeated.
    chosen: dict[str, int] = {}
    judged: dict[str, int]
    verdicts: dict[str, int]
    known_failures: int
    untested: list[str]
    seconds: float
    median_seconds: float
    peak_memory_mb: int
    # Of harness, broker and design in the rows, as far as they are known.
    cpu_s: dict[str, float] = {}
    limits_broken: list[str] = []
    exit_code: int


def exit_code(rows: list[RowResult], chosen: int, *, limits_broken: bool = False) -> int:
    """The run's exit code, from what was judged and how much was chosen."""
    verdicts = {row.verdict for row in rows}
    if any(row.fails for row in rows) or limits_broken:
        return 1
    if Verdict.HARNESS_ERROR in verdicts:
        return 3
    if Verdict.INCONCLUSIVE in verdicts:
        return 2
    if verdicts <= {Verdict.UNSUPPORTED}:  # a design that supports nothing has not passed
        return 5
    return 2 if len(rows) < chosen else 0


def median_seconds(rows: list[RowResult]) -> float:
    """The median row."""
    return round(statistics.median([row.seconds for row in rows]), 2) if rows else 0.0


def cpu_seconds(rows: Iterable[RowResult]) -> dict[str, float]:
    """What the rows took of the processor together, by whom."""
    total: dict[str, float] = {}
    for row in rows:
        for who in ("harness", "broker", "design"):
            taken_s = getattr(row.cost, f"{who}_cpu_s", None)
            if taken_s is not None:
                total[who] = round(total.get(who, 0.0) + taken_s, 2)
    return total


class Writer:
    """Writes `report.jsonl` line by line, so that nothing recorded is lost whatever happens
    next.
    """

    def __init__(self, out: Path) -> None:
        self._file = (out / "report.jsonl").open("wb", buffering=0)

    def write(self, line: RowResult | Summary) -> None:
        """Append one whole line, or none: a disk that fills up in its middle leaves the lines
        before it readable.
        """
        text, began = (line.model_dump_json() + "\n").encode(), self._file.tell()
        if self._file.write(text) < len(text):
            self._file.truncate(began)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._file.name)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read(path: Path) -> tuple[list[RowResult], Summary]:
    """Read a report back; UsageProblem where it is empty, cut or partial."""
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise UsageProblem(f"{path} cannot be read as a report: {error}") from None
    if not lines or not isinstance(lines[-1], dict) or lines[-1].get("kind") != "summary":
        raise UsageProblem(f"{path} is cut: it does not end with a summary, so it proves nothing")
    if isinstance(given := lines[-1].get("format", 1), int) and given > FORMAT:
        raise UsageProblem(
            f"{path} has format {given}, and this version reads {FORMAT} at most; use a newer one"
        )
    try:
        summary = Summary(**lines[-1])
        if summary.format < DEPTHS_SINCE:
            summary.chosen = summary.promised
        return [RowResult(**line) for line in lines[:-1]], summary
    except (ValidationError, TypeError) as error:
        said = " ".join(str(error).split())
        raise UsageProblem(f"{path} holds a line that is none of a report: {said[:200]}") from None


def joined(out: Path, parts: Iterable[Path]) -> None:
    """Write one junit.xml of several; one that was never written, or is cut, is left out."""
    whole = ET.Element("testsuites")
    for part in parts:
        with suppress(OSError, ET.ParseError):
            whole.extend(ET.parse(part).getroot())
    ET.ElementTree(whole).write(out / "junit.xml", encoding="utf-8", xml_declaration=True)


def table(rows: list[RowResult], promises: dict[str, str]) -> Table:
    """Guarantees down, designs across; a cell is the worst verdict of its rows, and how many there
    were.
    """
    designs = list(dict.fromkeys(row.design for row in rows))
    grid = Table(title=None, pad_edge=False)
    grid.add_column("guarantee", no_wrap=True)
    grid.add_column("promise", ratio=1)
    for design in designs:
        grid.add_column(design, no_wrap=True)
    order = list(Verdict)
    for guarantee, promise in promises.items():
        cells = []
        for design in designs:
            found = [
                row.verdict for row in rows if row.design == design and row.guarantee == guarantee
            ]
            if found:
                worst = min(found, key=order.index)
                counts = Counter(found)
                cells.append(Text(f"{worst} {counts[worst]}/{len(found)}", style=COLOURS[worst]))
            else:
                cells.append(Text("-", style="dim"))
        if any(str(cell) != "-" for cell in cells):
            grid.add_row(guarantee, promise, *cells)
    return grid


def card(row: RowResult, reproduce: str) -> str:
    """One failing row for a person: which scenario, which anomaly, which record, and how to see it
    again.
    """
    lines = [f"{row.verdict.upper()}  {row.id}  {row.design}", f"  claim     {row.name}"]
    for mark in row.marks:
        lines.append(f"  mark      {mark['fault']}")
    if not row.anomalies and row.reason:
        lines.append(f"  reason    {row.reason}")
    for anomaly in row.anomalies[:3]:
        lines.append(f"  anomaly   {anomaly.name}: {anomaly.text}")
        for label, value in (
            ("key", anomaly.key),
            ("input", anomaly.source),
            ("expected", anomaly.expected),
            ("got", anomaly.got),
        ):
            if value:
                lines.append(f"    {label:<9} {value}")
    if sum(row.totals.values()) > 3:
        lines.append(
            "  in all    " + ", ".join(f"{count} {name}" for name, count in row.totals.items())
        )
    for label, shown in (("shrunk", row.shrunk), ("timeline", row.timeline), ("log", row.log)):
        lines += [
            f"  {label if number == 0 else '':<9} {line}" for number, line in enumerate(shown)
        ]
    if row.history:
        lines.append(f"  history   {row.history}")
    if row.picture:
        lines.append(f"  picture   {row.picture}")
    lines.append(f"  again     {reproduce}")
    return "\n".join(lines)
