"""The report of a run as data: one result a row, and a summary."""

import statistics
from collections.abc import Iterable
from typing import Final, Literal, Self

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

from upheld.errors import ExitCode
from upheld.verdicts import Anomaly, Reason, Verdict

# Of report.jsonl. Format 8 has no baselines, subjects, pins and ends of waivers. Format 7 has no
# warnings of rows that show little, and no code `undeclared`. Format 6 has no date, and no commands
# that repeat a row. Format 5 has no versions that the proxy narrowed. Format 4 has no hashes of
# histories. Format 3 has no codes of reasons. Format 2 calls the version by the package's former
# name. Format 1, which has no number, has no depths and shards either.
FORMAT = 9
DEPTHS_SINCE = 2
LACKING: Final = "this machine has no"  # so began the reason of such a row before format 4


class Cost(BaseModel):
    """The cost of one row, all its attempts together.

    A part that cannot be known is None.
    """

    model_config = ConfigDict(extra="forbid")

    harness_cpu_s: float
    broker_cpu_s: float | None = None
    design_cpu_s: float
    # Of an instance's processes together, each at its own peak since it began.
    peak_memory_mb: int | None = None
    topics: int | None = None  # of the last attempt, with those that the design made
    topic_bytes: int | None = None


class RowResult(BaseModel):
    """The result of one row of one design."""

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
    known_until: str = ""  # the date from which it is no known failure any more
    known_days: int | None = None  # until that date
    lapsed: str = ""  # why its waiver does not count any more, if it has one that does not
    before: Verdict | None = None  # in the baseline; None without one, or if it had no such row
    excused: bool = False  # the baseline had it as bad as this, so that it fails no run
    anomalies: list[Anomaly] = []  # the worst ones, worst first
    totals: dict[str, int] = {}  # of all of them, by name
    marks: list[dict[str, object]] = []
    timeline: list[str] = []  # of a violated row, as `report.timeline` draws it
    log: list[str] = []  # of each instance: lines around the fault, and the last ones
    # Of Kafka's APIs: where clients behind the proxy used older versions than without it.
    narrowed: list[str] = []
    # What the verdict rests on: who says what is right (program, model or itself), what of it was
    # asked (relation, order, prefix), and what was asked that the oracle does not know.
    oracle: str = ""
    rests_on: list[str] = []
    lacks: list[str] = []
    shrunk: list[str] = []  # the records that are enough for its first anomaly
    attempts: int = 1
    kills: int = 0
    entries: int = 0
    keys: int = 0
    partitions: int = 0
    # Of an upheld row whose outputs may skip states: how many were due, and how many were shown.
    states: int = 0
    states_shown: int = 0
    waited_seconds: float = 0.0
    # Of the records that arrived all along: share of them -> when it was visible.
    waited_ms: dict[str, int] = {}
    seconds: float
    cost: Cost | None = None
    warnings: list[str] = []  # of an upheld row: why it shows less than it says
    history: str = ""
    history_sha256: str = ""  # of its lines, uncompressed
    picture: str = ""
    again: str = ""  # the command that repeats it, of a row that is not as it should be

    @model_validator(mode="after")
    def _read_by_text(self) -> Self:
        """Give a row of a report without codes the one code that tools ask for."""
        if self.code is None and self.reason.startswith(LACKING):
            self.code = Reason.MACHINE_LACKS
        return self

    @property
    def scenario(self) -> str:
        """The id of its scenario, such as `G22.dies-after-a-commit`."""
        return self.id.partition("[")[0]

    @property
    def has_card(self) -> bool:
        """Whether a person has to see what happened: it is violated, or proves nothing."""
        return self.verdict in {Verdict.VIOLATED, Verdict.INCONCLUSIVE, Verdict.HARNESS_ERROR}

    @property
    def fails(self) -> bool:
        """Whether this row alone fails the run.

        That is a new violation, or a known failure that is upheld.
        """
        if self.excused or self.verdict not in {Verdict.VIOLATED, Verdict.UPHELD}:
            return False
        return (self.verdict is Verdict.VIOLATED) != (self.known is not None)

    @property
    def is_accepted(self) -> bool:
        """Whether it is a known failure that still fails."""
        return self.known is not None and self.verdict is Verdict.VIOLATED


class Change(BaseModel):
    """A row whose verdict is another one than in the baseline."""

    model_config = ConfigDict(extra="forbid")

    design: str
    id: str
    was: Verdict
    now: Verdict | None = None  # None: it was not judged


class Comparison(BaseModel):
    """The verdicts of a run beside those of its baseline."""

    model_config = ConfigDict(extra="forbid")

    report: str  # the baseline, as it was typed
    differs: dict[str, list[str]] = {}  # what is not alike in both -> there, and here
    partial: bool = False  # whether the baseline was ended early
    worse: list[Change] = []
    better: list[Change] = []
    new: list[str] = []  # design and id of each row that the baseline lacks
    as_bad: int = 0  # rows that are excused


class Summary(BaseModel):
    """The end of a run, and what it ran on."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["summary"] = "summary"
    format: int = 1
    partial: bool
    ended: str = ""  # when, in UTC and ISO 8601
    upheld: str = Field(validation_alias=AliasChoices("upheld", "streamgate"))
    seed: int
    depth: str = "full"
    slice: str = ""  # of the rows that the depth leaves out, such as 3/8
    shard: str = ""  # of the chosen rows, such as 2/4
    shards: int = 0  # the number of reports that it was merged from
    narrowed: bool = False  # whether options named what is judged, beside depth and slice
    repeat: int = 1
    design_versions: dict[str, str] = {}
    subjects: dict[str, str] = {}  # design -> sha256 of what was judged; empty if it is unknown
    broker: str
    broker_why: str
    versions: dict[str, str]
    promised: dict[str, int]  # rows of each design, at full depth
    specs: dict[str, str] = {}  # design -> the version of the specification that it pins
    newer: dict[str, list[str]] = {}  # design -> rows that were not judged for that
    # The promised rows that depth, slice, shard and options choose, times the repetitions.
    chosen: dict[str, int] = {}
    judged: dict[str, int]
    verdicts: dict[str, int]
    known_failures: int
    untested: list[str]
    seconds: float
    median_seconds: float
    peak_memory_mb: int  # 0 if it could not be measured
    # Of harness, broker and design in the rows, as far as they are known.
    cpu_s: dict[str, float] = {}
    # The limits that designs declare of their engines, by design.
    cannot: dict[str, list[str]] = {}
    limits_broken: list[str] = []
    limits_unmeasured: list[str] = []  # nothing proves that they were kept
    baseline: Comparison | None = None
    exit_code: int


def exit_code(
    rows: list[RowResult],
    chosen: int,
    *,
    limits_broken: bool = False,
    limits_unmeasured: bool = False,
) -> int:
    """Return the run's exit code, from its rows and the number that was chosen."""
    verdicts = {row.verdict for row in rows if not row.excused}
    if any(row.fails for row in rows) or limits_broken:
        return ExitCode.VIOLATED
    if Verdict.HARNESS_ERROR in verdicts:
        return ExitCode.HARNESS_FAILED
    if Verdict.INCONCLUSIVE in verdicts:
        return ExitCode.INCONCLUSIVE
    if {row.verdict for row in rows} <= {Verdict.UNSUPPORTED}:  # nothing has passed
        return ExitCode.NOTHING_JUDGED
    is_proved = len(rows) >= chosen and not limits_unmeasured
    return ExitCode.UPHELD if is_proved else ExitCode.INCONCLUSIVE


def median_seconds(rows: list[RowResult]) -> float:
    """Return the seconds of the median row; 0 if there is none."""
    return round(statistics.median([row.seconds for row in rows]), 2) if rows else 0.0


def cpu_seconds(rows: Iterable[RowResult]) -> dict[str, float]:
    """Return the CPU-seconds of all rows together, by harness, broker and design."""
    total: dict[str, float] = {}
    for row in rows:
        for part in ("harness", "broker", "design"):
            taken_s = getattr(row.cost, f"{part}_cpu_s", None)
            if taken_s is not None:
                total[part] = round(total.get(part, 0.0) + taken_s, 2)
    return total
