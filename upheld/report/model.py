"""The report of a run as data: one result a row, and a summary."""

import statistics
from collections.abc import Iterable
from typing import Final, Literal, Self

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

from upheld.errors import ExitCode
from upheld.spec.power import Power
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

    harness_cpu_s: float = Field(description="CPU-seconds of the harness")
    broker_cpu_s: float | None = Field(
        default=None, description="CPU-seconds of the broker; null if it is elsewhere"
    )
    design_cpu_s: float = Field(description="CPU-seconds of the design's processes")
    peak_memory_mb: int | None = Field(
        default=None,
        description="of an instance's processes together, each at its own peak since it began",
    )
    topics: int | None = Field(
        default=None, description="topics of the last attempt, with those that the design made"
    )
    topic_bytes: int | None = Field(default=None, description="bytes in these topics")


class RowResult(BaseModel):
    """The result of one row of one design."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["row"] = "row"
    design: str = Field(description="the design that was judged")
    id: str = Field(description="the row, such as G22.dies-after-a-commit[relay-exactly_once]")
    guarantee: str = Field(description="its guarantee, such as G22")
    name: str = Field(description="the claim of its scenario")
    repetition: int = Field(default=0, description="which repetition it is, from 0")
    verdict: Verdict = Field(description="the verdict")
    code: Reason | None = Field(
        default=None, description="the kind of the reason; `reason` is its text"
    )
    reason: str = Field(default="", description="in words, why it is neither upheld nor violated")
    known: str | None = Field(
        default=None, description="the reason and link of a known failure; null if it is none"
    )
    known_until: str = Field(
        default="", description="the date from which it is no known failure any more"
    )
    known_days: int | None = Field(default=None, description="the days until that date")
    lapsed: str = Field(
        default="",
        description="why its waiver does not count any more, if it has one that does not",
    )
    before: Verdict | None = Field(
        default=None,
        description="the verdict in the baseline; null without one, or if it had no such row",
    )
    excused: bool = Field(
        default=False,
        description="whether the baseline had it as bad as this, so that it fails no run",
    )
    anomalies: list[Anomaly] = Field(default=[], description="the worst ones, worst first")
    totals: dict[str, int] = Field(default={}, description="name of an anomaly -> how many")
    marks: list[dict[str, object]] = Field(
        default=[], description="the evidence of each fault: its code, the moment, what was seen"
    )
    timeline: list[str] = Field(
        default=[], description="of a violated row: the lines of its drawing"
    )
    log: list[str] = Field(
        default=[], description="of each instance: lines around the fault, and the last ones"
    )
    narrowed: list[str] = Field(
        default=[],
        description="of Kafka's APIs: where clients behind the proxy used older versions than "
        "without it",
    )
    oracle: str = Field(
        default="", description="who says what is right: program, model, previous or itself"
    )
    rests_on: list[str] = Field(
        default=[], description="what of it was asked: relation, last value per key, order, prefix"
    )
    lacks: list[str] = Field(default=[], description="what was asked that the oracle does not know")
    power: Power | None = Field(
        default=None, description="of the wrong designs, how many the row catches with this oracle"
    )
    shrunk: list[str] = Field(
        default=[], description="the records that are enough for its first anomaly"
    )
    attempts: int = Field(default=1, description="how often it was tried")
    kills: int = Field(default=0, description="how many processes were killed")
    entries: int = Field(default=0, description="the records of its input that count")
    keys: int = Field(default=0, description="the keys of its input")
    partitions: int = Field(default=0, description="the partitions of its input")
    states: int = Field(
        default=0,
        description="of an upheld row whose outputs may skip states: how many were due",
    )
    states_shown: int = Field(default=0, description="how many of them were shown")
    waited_seconds: float = Field(default=0.0, description="how long it was looked on")
    waited_ms: dict[str, int] = Field(
        default={},
        description="of the records that arrived all along: share of them -> when it was visible",
    )
    seconds: float = Field(description="the time that it took")
    cost: Cost | None = Field(default=None, description="what it cost; null if it was not run")
    warnings: list[str] = Field(
        default=[], description="of an upheld row: why it shows less than it says"
    )
    history: str = Field(default="", description="its history, a file in the report's folder")
    history_sha256: str = Field(
        default="", description="the hash of the history's lines, uncompressed"
    )
    picture: str = Field(default="", description="its drawing, a file in the report's folder")
    again: str = Field(
        default="", description="the command that repeats a row that is not as it should be"
    )

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

    design: str = Field(description="the design that was judged")
    id: str = Field(description="the row")
    was: Verdict = Field(description="the verdict in the baseline")
    now: Verdict | None = Field(default=None, description="the verdict; null if it was not judged")


class Comparison(BaseModel):
    """The verdicts of a run beside those of its baseline."""

    model_config = ConfigDict(extra="forbid")

    report: str = Field(description="the baseline, as it was typed")
    differs: dict[str, list[str]] = Field(
        default={}, description="what is not alike in both -> there, and here"
    )
    partial: bool = Field(default=False, description="whether the baseline was ended early")
    worse: list[Change] = Field(default=[], description="the rows that got worse")
    better: list[Change] = Field(default=[], description="the rows that got better")
    new: list[str] = Field(
        default=[], description="design and id of each row that the baseline lacks"
    )
    as_bad: int = Field(default=0, description="the number of rows that are excused")


class Release(BaseModel):
    """The release before a design, of two that were judged together."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(description="its name")
    version: str = Field(description="its version")
    subject: str = Field(description="sha256 of it, as in `subjects`; empty if it is unknown")


class Summary(BaseModel):
    """The end of a run, and what it ran on."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["summary"] = "summary"
    format: int = Field(default=1, description="the format of the report")
    partial: bool = Field(description="whether the run was ended early")
    ended: str = Field(default="", description="when it ended, in UTC and ISO 8601")
    upheld: str = Field(
        validation_alias=AliasChoices("upheld", "streamgate"),
        description="the version that gave the verdicts",
    )
    seed: int = Field(description="the seed of all inputs")
    depth: str = Field(default="full", description="quick, core or full")
    slice: str = Field(default="", description="of the rows that the depth leaves out, such as 3/8")
    shard: str = Field(default="", description="of the chosen rows, such as 2/4")
    shards: int = Field(default=0, description="the number of reports that it was merged from")
    narrowed: bool = Field(
        default=False,
        description="whether options named what is judged, beside depth and slice",
    )
    repeat: int = Field(default=1, description="how often each row was judged")
    design_versions: dict[str, str] = Field(default={}, description="design -> its version")
    subjects: dict[str, str] = Field(
        default={}, description="design -> sha256 of what was judged; empty if it is unknown"
    )
    follows: dict[str, Release] = Field(
        default={}, description="design -> the release before it, if two were judged together"
    )
    broker: str = Field(description="the broker that it ran on")
    broker_why: str = Field(description="why on that one")
    versions: dict[str, str] = Field(description="part of the machine -> its version")
    promised: dict[str, int] = Field(description="design -> its rows, at full depth")
    specs: dict[str, str] = Field(
        default={}, description="design -> the version of the specification that it pins"
    )
    newer: dict[str, list[str]] = Field(
        default={}, description="design -> rows that were not judged for that"
    )
    chosen: dict[str, int] = Field(
        default={},
        description="design -> the promised rows that depth, slice, shard and options choose, "
        "times the repetitions",
    )
    judged: dict[str, int] = Field(description="design -> the rows that were judged")
    verdicts: dict[str, int] = Field(description="verdict -> how many rows have it")
    known_failures: int = Field(description="how many failures are known")
    untested: list[str] = Field(description="the guarantees that no row judges")
    seconds: float = Field(description="the time that the run took")
    median_seconds: float = Field(description="the time that the median row took")
    peak_memory_mb: int = Field(
        description="of all processes together; 0 if it could not be measured"
    )
    cpu_s: dict[str, float] = Field(
        default={},
        description="CPU-seconds of harness, broker and design in the rows, as far as they are "
        "known",
    )
    cannot: dict[str, list[str]] = Field(
        default={}, description="design -> the limits that it declares of its engine"
    )
    limits_broken: list[str] = Field(
        default=[], description="which of --max-seconds and --max-memory-mb were broken"
    )
    limits_unmeasured: list[str] = Field(
        default=[], description="of which nothing proves that they were kept"
    )
    baseline: Comparison | None = Field(
        default=None, description="how it differs from the baseline; null without one"
    )
    exit_code: int = Field(description="the exit code of the run")


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
