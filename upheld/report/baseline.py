"""An older report as the baseline of a run.

A run fails on what got worse since. A row that was as bad in the baseline is excused, so that it
fails no run. Every other row counts as it does without a baseline.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from upheld.errors import UsageProblem
from upheld.report.model import Change, Comparison, RowResult, Summary
from upheld.report.reasons import few
from upheld.report.writer import file_of, read
from upheld.verdicts import Verdict

# What has to be alike in a baseline, by its name on the command line: the field of the summary,
# and its name for a person.
ALIKE: Final = {
    "version": ("upheld", "the version of upheld"),
    "depth": ("depth", "the depth"),
    "seed": ("seed", "the seed"),
}
SUBJECT: Final = "subject"  # which has to be alike too, of each design
UNKNOWN: Final = "unknown"  # a subject of which no digest was made
MOST_NAMED: Final = 10  # rows that got worse, in the block that a run prints
_UNPROVEN: Final = 2  # and worse is bad
_RANKS: Final = {
    Verdict.UPHELD: 0,
    Verdict.UNSUPPORTED: 1,
    Verdict.INCONCLUSIVE: _UNPROVEN,
    Verdict.HARNESS_ERROR: _UNPROVEN,
    Verdict.VIOLATED: 3,
}
_ACCEPTED: Final = _RANKS[Verdict.UNSUPPORTED]

RowName = tuple[str, str]  # design and id


class Difference(NamedTuple):
    """A part in which two reports are not alike.

    Attributes:
        name: The name of the part.
        what: Its name for a person.
        first: Its value in the first report.
        second: Its value in the second one.
    """

    name: str
    what: str
    first: object
    second: object


def differences(
    alike: Mapping[str, tuple[str, str]], first: Mapping[str, Any], second: Mapping[str, Any]
) -> Iterator[Difference]:
    """Go through the parts in which two summaries are not alike.

    Args:
        alike: Name of a part -> the field of the summaries, and its name for a person.
        first: The fields of a summary.
        second: Those of the other one.
    """
    for name, (key, what) in alike.items():
        if first[key] != second[key]:
            yield Difference(name, what, first[key], second[key])


@dataclass(frozen=True)
class Baseline:
    """An older report, to compare a run with.

    Attributes:
        name: The report, as it was typed.
        rows: The worst result of each row over its repetitions.
        summary: Its summary.
        across: What may differ, by the names of `ALIKE`, or `SUBJECT`.
        expected: Design -> ids of the rows that the run would judge, if they are promised.
    """

    name: str
    rows: Mapping[RowName, RowResult]
    summary: Summary
    across: Collection[str] = ()
    expected: Mapping[str, Collection[str]] = field(default_factory=dict)

    @property
    def designs(self) -> list[str]:
        """The designs that it judged."""
        return list(dict.fromkeys(design for design, _ in self.rows))

    def demand_alike(self, fields: Mapping[str, Any]) -> None:
        """Refuse to be compared with a run that differs in what may not differ.

        Args:
            fields: Those of the run's summary that are named in `ALIKE`, and its subjects.

        Raises:
            UsageProblem: It differs.
        """
        for each in self._differences(fields):
            if each.name not in self.across:
                raise UsageProblem(
                    f"{self.name} is no baseline of this run: {each.what} is {each.first!r} there "
                    f"and {each.second!r} here. Make them alike, or compare with "
                    f"--across {each.name}."
                )

    def demand_designs(self, designs: Iterable[str]) -> None:
        """Refuse to be compared with a design that it did not judge.

        Raises:
            UsageProblem: A design is not among its own.
        """
        for design in designs:
            if design not in self.designs:
                raise UsageProblem(
                    f"{self.name} is no baseline of {design}: it judged "
                    f"{', '.join(self.designs) or 'nothing'}."
                )

    def compare(self, row: RowResult) -> None:
        """Note in a row what it was here, and whether that excuses it."""
        if was := self.rows.get((row.design, row.id)):
            row.before = was.verdict
            row.excused = _rank(was) >= _rank(row) >= _UNPROVEN

    def is_worse(self, row: RowResult) -> bool:
        """Return whether a row got worse, and no known failure says so."""
        was = self.rows.get((row.design, row.id))
        return was is not None and not row.is_accepted and _rank(row) > _rank(was)

    def compared(self, rows: Iterable[RowResult], fields: Mapping[str, Any]) -> Comparison:
        """Return what became of the rows of a run since.

        Args:
            rows: The rows.
            fields: Those of the run's summary that are named in `ALIKE`, and its subjects.
        """
        judged = list(rows)
        now = worst(judged)
        found = Comparison(
            report=self.name,
            differs={
                each.what: [str(each.first), str(each.second)] for each in self._differences(fields)
            },
            partial=self.summary.partial,
            new=[" ".join(name) for name in now if name not in self.rows],
            as_bad=sum(row.excused for row in judged),
        )
        for name, row in now.items():
            if was := self.rows.get(name):
                change = Change(design=name[0], id=name[1], was=was.verdict, now=row.verdict)
                if self.is_worse(row):
                    found.worse.append(change)
                elif _rank(row) < _rank(was) and _rank(row) <= _ACCEPTED:
                    found.better.append(change)
        found.worse += self._missing(now)
        return found

    def _missing(self, now: Collection[RowName]) -> Iterator[Change]:
        """Go through the rows that were upheld, and that the run should have judged."""
        for (design, row_id), was in self.rows.items():
            is_due = row_id in self.expected.get(design, ()) and (design, row_id) not in now
            if is_due and was.verdict is Verdict.UPHELD:
                yield Change(design=design, id=row_id, was=was.verdict)

    def _differences(self, fields: Mapping[str, Any]) -> Iterator[Difference]:
        yield from differences(ALIKE, dict(self.summary), fields)
        subjects: Mapping[str, str] = fields["subjects"]
        for design, here in subjects.items():
            there = self.summary.subjects.get(design, "")
            if not here or there != here:
                yield Difference(
                    SUBJECT, f"the subject of {design}", there or UNKNOWN, here or UNKNOWN
                )


def load(path: Path, across: Collection[str] = ()) -> Baseline:
    """Read a report as a baseline.

    Args:
        path: The report, or the output folder that it is in.
        across: What may differ, by the names of `ALIKE`, or `SUBJECT`.

    Raises:
        UsageProblem: It is none, or that of one shard.
    """
    rows, summary = read(file_of(path))
    if summary.shard:
        raise UsageProblem(
            f"{path} is the report of shard {summary.shard} alone; `upheld merge` makes one "
            "report of all shards, which may be a baseline."
        )
    return Baseline(str(path), worst(rows), summary, across)


def worst(rows: Iterable[RowResult]) -> dict[RowName, RowResult]:
    """Return the worst result of each row over its repetitions."""
    found = dict[RowName, RowResult]()
    for row in rows:
        name = (row.design, row.id)
        if name not in found or _rank(row) > _rank(found[name]):
            found[name] = row
    return found


def has_failed(row: RowResult) -> bool:
    """Return whether a row failed its run, or would have without a baseline."""
    return row.fails or row.excused or _rank(row) == _UNPROVEN


def excuse(row: RowResult) -> str:
    """Return the words on a row that is excused."""
    return f"{row.verdict}, and {row.before} in the baseline"


def lines(found: Comparison) -> Iterator[str]:
    """Go through the lines that say what became of the rows since a baseline."""
    partial = ", which is partial" if found.partial else ""
    yield (
        f"beside the baseline {found.report}{partial}: {len(found.worse)} worse, "
        f"{len(found.better)} better, {len(found.new)} new, {found.as_bad} as bad as there"
    )
    for what, (there, here) in found.differs.items():
        yield f"{what} was {there} there and is {here} here"
    for change in found.worse[:MOST_NAMED]:
        yield (
            f"worse: {change.design} {change.id} was {change.was} and is "
            f"{change.now or 'not judged'}"
        )
    if len(found.worse) > MOST_NAMED:
        yield f"worse: {len(found.worse) - MOST_NAMED} more rows"
    if found.better:
        yield f"better: {few([f'{each.design} {each.id}' for each in found.better])}"
    if found.new:
        yield f"new: {few(found.new)}"


def limit(found: Comparison) -> str:
    """Return why a run fails that got worse; empty if it did not."""
    number = len(found.worse)
    return f"--baseline: {number} row{'s' * (number != 1)} got worse" if number else ""


def _rank(row: RowResult) -> int:
    """Return how bad a row is; a known failure that still fails is accepted."""
    return _ACCEPTED if row.is_accepted else _RANKS[row.verdict]
