"""The demands on the depths below full.

Because of them, judging less leaves no kind of promise, fault or mistake unjudged. A demand is a
name and the rows of which one has to be chosen. The lint refuses a specification that breaks a
demand. `tools/cover.py` finds the cheapest rows that meet all demands, and writes their depth into
the features.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from upheld.errors import UsageProblem
from upheld.judging.claims import anomalies_of, claims_of
from upheld.programs import PROGRAMS
from upheld.protocol.manifest import Manifest
from upheld.protocol.messages import MODES
from upheld.spec.catalogue import Catalogue
from upheld.spec.depths import is_within
from upheld.spec.fault_families import families
from upheld.spec.gherkin import Row, Scenario
from upheld.spec.selection import promised, rows_of_the_mutant

# A design that promises all there is.
EVERYTHING: Final = Manifest(
    folder=Path(),
    name="everything",
    version="0",
    command=("true",),
    programs=tuple(PROGRAMS),
    modes=MODES,
)


@dataclass(frozen=True)
class Demand:
    """A demand: at least one of these rows has to be chosen."""

    name: str
    rows: frozenset[str]

    def is_met(self, chosen: Collection[str]) -> bool:
        """Return whether one of its rows is among the chosen."""
        return not self.rows.isdisjoint(chosen)


def core_demands(found: Catalogue) -> list[Demand]:
    """List the demands on the rows of `core` together, without those of mutants."""
    rows = promised(found, EVERYTHING)
    kinds: tuple[Callable[[Scenario, Row], Iterable[str]], ...] = (
        _promises,
        _checks,
        _anomalies,
        _program_and_mode,
        _program_and_family,
        _mode_and_family,
    )
    demanded = defaultdict[str, set[str]](set)
    for kind in kinds:
        for row in rows:
            for name in kind(found.by_row[row.id], row):
                demanded[name].add(row.id)
    return [Demand(name, frozenset(ids)) for name, ids in demanded.items()]


def quick_demands(found: Catalogue) -> list[Demand]:
    """List the demands on `quick`: a row of each documented guarantee.

    If a fault strikes a row of the guarantee, it has to be such a row.
    """
    by_guarantee = defaultdict[str, list[Row]](list)
    for row in promised(found, EVERYTHING):
        by_guarantee[found.by_row[row.id].guarantee].append(row)
    demands = []
    for guarantee in found.guarantees.values():
        rows = by_guarantee[guarantee.id]
        if guarantee.strength == "documented" and rows:
            struck = [row for row in rows if families(row)]
            ids = frozenset(row.id for row in struck or rows)
            what = "a row that a fault strikes" if struck else "a row"
            demands.append(Demand(f"{guarantee.id} has {what}", ids))
    return demands


def _promises(scenario: Scenario, row: Row) -> Iterable[str]:
    yield f"{scenario.guarantee} has a row on {row.program}"
    yield f"{scenario.guarantee} has a row in mode {row.mode}"


def _checks(_: Scenario, row: Row) -> Iterable[str]:
    for claim in claims_of(row):
        yield f"the check {claim.check} is called"


def _anomalies(scenario: Scenario, _: Row) -> Iterable[str]:
    for anomaly in anomalies_of(scenario):
        yield f"the anomaly {anomaly} can be named"


def _program_and_mode(_: Scenario, row: Row) -> Iterable[str]:
    yield f"{row.program} runs in mode {row.mode}"


def _program_and_family(_: Scenario, row: Row) -> Iterable[str]:
    for family in sorted(families(row)):
        yield f"{row.program} is struck by a fault of the family {family}"


def _mode_and_family(_: Scenario, row: Row) -> Iterable[str]:
    for family in sorted(families(row)):
        yield f"mode {row.mode} meets a fault of the family {family}"


def alternates(found: Catalogue) -> Mapping[str, Sequence[str]]:
    """Map each row that a complete design promises to the rows that stand in for it.

    A scenario that is judged in one mode, or on one program, has rows for designs that lack the
    usual one.
    """
    usual = {row.id for row in promised(found, EVERYTHING)}
    instead = defaultdict[str, list[str]](list)
    for scenario in found.scenarios:
        mine = [row for row in scenario.rows if row.id in usual]
        for row in scenario.rows:
            if row.id not in usual and mine:
                nearest = min(
                    mine, key=lambda own: (own.program != row.program, own.mode != row.mode)
                )
                instead[nearest.id].append(row.id)
    return instead


def breaches(found: Catalogue, wrong: Iterable[Manifest]) -> list[str]:
    """Name each demand that the depths in the features do not meet."""
    rows = [row for scenario in found.scenarios if scenario.is_usual for row in scenario.rows]
    core = {row.id for row in rows if is_within(row.depth, "core")}
    quick = {row.id for row in rows if row.depth == "quick"}
    broken = [f"core: {demand.name}" for demand in core_demands(found) if not demand.is_met(core)]
    broken += [
        f"quick: {demand.name}" for demand in quick_demands(found) if not demand.is_met(quick)
    ]
    by_id = {row.id: row for row in rows}
    for usual, others in alternates(found).items():
        if usual in by_id:
            odd = [other for other in others if by_id[other].depth != by_id[usual].depth]
            broken += [f"{other} has the depth of {usual}, which it stands in for" for other in odd]
    for design in wrong:
        broken += _of_the_wrong(found, design, core)
    return broken


def _of_the_wrong(found: Catalogue, design: Manifest, core: Collection[str]) -> Iterable[str]:
    """Demand that a row of core catches a wrong design, and that it passes one."""
    assert design.sin
    try:
        rows = rows_of_the_mutant(found, design, "core")
    except UsageProblem as problem:
        yield str(problem).rstrip(".")
        return
    if not rows - {design.sin.control}:
        yield f"core: {design.name} is caught by a row of its [sin]"
    if design.sin.control and design.sin.control not in core:
        yield f"core: the control of {design.name} is a row of core"
