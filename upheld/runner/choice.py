"""The rows that a run judges, in their order, and the options that say how."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import partial

import upheld
from upheld.history.keeping import Keep
from upheld.protocol.manifest import Manifest
from upheld.report import RowResult
from upheld.report.baseline import Baseline
from upheld.report.formats import USUAL
from upheld.report.model import Release
from upheld.spec import durations
from upheld.spec.catalogue import Catalogue
from upheld.spec.depths import Depth
from upheld.spec.durations import Durations
from upheld.spec.gherkin import ON_A_CLUSTER
from upheld.ui.timeleft import RowKey


@dataclass(frozen=True)
class First:
    """The rows that are judged before all others of their design.

    Attributes:
        report: The report in which they failed, as a user names it.
        rows: Design -> their ids.
    """

    report: str = ""
    rows: Mapping[str, Collection[str]] = field(default_factory=dict)

    @property
    def said(self) -> str:
        """The words for the first line of a run; empty if there are none."""
        number = sum(map(len, self.rows.values()))
        if not number:
            return ""
        which = "the row" if number == 1 else f"the {number} rows"
        return f"; first {which} that failed in {self.report}"


@dataclass
class Choice:
    """The rows that a run judges, beside the rig that it judges them on."""

    manifests: list[Manifest]
    catalogue: Catalogue
    rows: dict[str, set[str]]  # design -> ids of the rows chosen of it
    depth: Depth = "full"
    slice: str = ""
    shard: str = ""
    newer: dict[str, list[str]] = field(default_factory=dict)  # design -> rows after its pin
    subjects: dict[str, str] = field(default_factory=dict)  # design -> digest of what is judged
    follows: dict[str, Release] = field(default_factory=dict)  # design -> the release before it
    promised: dict[str, int] = field(default_factory=dict)  # design -> its rows at full depth
    is_narrowed: bool = False  # whether options name what is judged, beside depth and slice
    repeat: int = 1
    fail_fast: bool = False
    max_seconds: float | None = None
    max_memory_mb: int | None = None
    is_strict: bool = False  # whether what is unsupported has to be declared
    required: tuple[str, ...] = ()  # what each verdict has to rest on, if its row asks for it
    new_limits: list[str] = field(default_factory=list)  # that --strict does not accept
    baseline: Baseline | None = None  # what the verdicts are compared with
    first: First = First()
    formats: tuple[str, ...] = USUAL  # that the report is also written in
    keep: Keep = "packed"  # how histories are kept
    again: str = "upheld run"
    earlier: str = ""  # the release before the design, as it was named by --from
    narrowed: str = ""  # the options on programs and modes, as they are typed
    specs: dict[str, str] = field(default_factory=dict)  # design -> how the user named it
    # By which waivers end; one date for all rows.
    today: date = field(default_factory=lambda: datetime.now(UTC).date())
    results: list[RowResult] = field(default_factory=list)
    durations: Durations = field(default_factory=durations.load)

    def keys(self) -> list[RowKey]:
        """Return the chosen rows in their order.

        It is design by design, repetition by repetition. Those that failed last time come first,
        and then those that bring most news.
        """
        known = [row.id for scenario in self.catalogue.by_id.values() for row in scenario.rows]
        found: list[RowKey] = []
        for manifest in self.manifests:
            ids = durations.most_news_first(
                (row_id for row_id in known if row_id in self.rows[manifest.name]),
                guarantee=_guarantee,
                seconds=partial(self.durations.news_seconds, manifest.name),
            )
            failed = self.first.rows.get(manifest.name, ())
            ids.sort(key=lambda row_id: row_id not in failed)
            for repetition in range(self.repeat):
                found += [RowKey(manifest.name, row_id, repetition) for row_id in ids]
        return found

    def on_a_cluster(self) -> set[str]:
        """Return the ids of the rows that run on a cluster of three brokers."""
        return {
            row.id
            for scenario in self.catalogue.by_id.values()
            for row in scenario.rows
            if ON_A_CLUSTER in row.tags
        }

    def alike(self, seed: int) -> dict[str, object]:
        """Return the fields of the summary in which a baseline has to be alike."""
        return {
            "upheld": upheld.__version__,
            "depth": self.depth,
            "seed": seed,
            "subjects": self.subjects,
        }

    def left_out(self) -> str:
        """Say how many rows were not judged, and which guarantees lack a verdict for that.

        It is empty if all were judged.
        """
        judged = {RowKey(row.design, row.id, row.repetition) for row in self.results}
        keys = self.keys()
        left = [key for key in keys if key not in judged]
        if not left:
            return ""
        verdicts = {(key.design, _guarantee(key.row_id)) for key in judged}
        lacking: dict[str, list[str]] = {}
        for key in left:
            if (key.design, _guarantee(key.row_id)) not in verdicts:
                lacking.setdefault(key.design, []).append(_guarantee(key.row_id))
        order = list(self.catalogue.guarantees)

        def place(name: str) -> tuple[int, str]:
            return order.index(name) if name in order else -1, name

        named = [", ".join(sorted(set(ids), key=place)) for ids in lacking.values()]
        if len(self.manifests) > 1:
            named = [f"{design} {ids}" for design, ids in zip(lacking, named, strict=True)]
        without = f"no verdict on {'; '.join(named)}" if named else "every guarantee has a verdict"
        return f"{len(left)} of {len(keys)} rows left out; {without}"


def _guarantee(row_id: str) -> str:
    return row_id.partition(".")[0]
