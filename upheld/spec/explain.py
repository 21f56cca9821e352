"""The output of `upheld list` and `upheld explain`, as data and as text."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from textwrap import indent
from typing import NotRequired, TypedDict

from pydantic import BaseModel, ConfigDict

from upheld.errors import UsageProblem
from upheld.guesses import did_you_mean
from upheld.protocol.manifest import Manifest
from upheld.spec.catalogue import Catalogue, Guarantee
from upheld.spec.depths import Depth
from upheld.spec.gherkin import Scenario
from upheld.spec.selection import Chosen, is_usual, promised
from upheld.text import wrapped


class Counts(TypedDict):
    """Numbers of guarantees."""

    all: int
    specified: int
    untested: int


class ListedRow(TypedDict):
    """One row, as `upheld list --json` prints it."""

    id: str
    guarantee: str
    scenario: str
    name: str
    program: str | None
    mode: str | None
    depth: Depth
    since: str
    family: str
    tags: list[str]


class ListedGuarantee(TypedDict):
    """A guarantee that no scenario judges, and the reason."""

    id: str
    why: str | None


class ListedDesign(TypedDict):
    """The rows that a design has promised."""

    promised: int
    chosen: NotRequired[int]
    rows: list[str]
    newer: NotRequired[list[str]]  # not promised, since the design pins an older version


class Listing(TypedDict):
    """The rows, and the counts that a run is held to."""

    guarantees: Counts
    scenarios: int
    rows: list[ListedRow]
    untested: list[ListedGuarantee]
    designs: dict[str, ListedDesign]


class ExplainedScenario(BaseModel):
    """One scenario of a guarantee, and the anomalies that it can name."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    name: str
    file: str
    line: int
    rows: list[str]
    anomalies: list[str]
    needs: list[str]  # capabilities
    gherkin: str


class Explanation(Guarantee):
    """A guarantee with its source's title and scenarios, for `upheld explain`."""

    title: str | None
    broken_by: list[str]
    costs: list[str]
    scenarios: list[ExplainedScenario]


def listing(
    found: Catalogue, designs: Iterable[Manifest] = (), chosen: Chosen = is_usual
) -> Listing:
    """Return the chosen rows, and those that each design has promised."""
    untested = [guarantee for guarantee in found.guarantees.values() if not guarantee.specified]
    rows = list(_listed(found, chosen))
    return {
        "guarantees": {
            "all": len(found.guarantees),
            "specified": len(found.guarantees) - len(untested),
            "untested": len(untested),
        },
        "scenarios": len({row["scenario"] for row in rows}),
        "rows": rows,
        "untested": [{"id": guarantee.id, "why": guarantee.why} for guarantee in untested],
        "designs": {design.name: _promise(found, design, chosen) for design in designs},
    }


def _listed(found: Catalogue, chosen: Chosen) -> Iterator[ListedRow]:
    for scenario in found.scenarios:
        for row in scenario.rows:
            if chosen(scenario, row):
                yield {
                    "id": row.id,
                    "guarantee": scenario.guarantee,
                    "scenario": scenario.id,
                    "name": scenario.name,
                    "program": row.program,
                    "mode": row.mode,
                    "depth": row.depth,
                    "since": found.since(row),
                    "family": scenario.family,
                    "tags": sorted(row.tags),
                }


def _promise(found: Catalogue, design: Manifest, chosen: Chosen) -> ListedDesign:
    rows = promised(found, design, chosen)
    return {"promised": len(rows), "rows": [row.id for row in rows]}


def explanation(
    found: Catalogue,
    name: str,
    anomalies_of: Callable[[Scenario], Iterable[str]] = lambda _: (),
    needs_of: Callable[[Scenario], Iterable[str]] = lambda _: (),
) -> Explanation:
    """Explain a guarantee, by all of its scenarios or by the one that is named.

    Args:
        found: The catalogue.
        name: The id of the guarantee, or of one of its scenarios or rows.
        anomalies_of: Names the anomalies that a scenario can find.
        needs_of: Names the capabilities that rows of a scenario need.

    Raises:
        UsageProblem: There is no such guarantee, scenario or row.
    """
    named = name.removeprefix("@")
    guarantee = found.guarantee(named)
    if "." in named and named not in found.by_id and named not in found.by_row:
        near = did_you_mean(named, (*found.by_id, *found.by_row))
        raise UsageProblem(f"{name} is no scenario and no row of {guarantee.id}.{near}")
    own = [scenario for scenario in found.scenarios if scenario.guarantee == guarantee.id]
    if only := found.by_row.get(named) or found.by_id.get(named):
        rows = tuple(row for row in only.rows if named in {row.id, only.id})
        shown = [replace(only, rows=rows)]
    else:
        shown = own
    features = {scenario.feature.file: scenario.feature for scenario in own}.values()
    return Explanation(
        **guarantee.model_dump(),
        title=found.sources.get(guarantee.source or ""),
        broken_by=[feature.broken_by for feature in features if feature.broken_by],
        costs=[feature.costs for feature in features if feature.costs],
        scenarios=[
            ExplainedScenario(
                id=scenario.id,
                name=scenario.name,
                file=scenario.feature.file,
                line=scenario.line,
                rows=[row.id for row in scenario.rows],
                anomalies=list(anomalies_of(scenario)),
                needs=list(needs_of(scenario)),
                gherkin=scenario.source,
            )
            for scenario in shown
        ],
    )


def as_text(explained: Explanation, width: int | None = None) -> str:
    """Set an explanation for a terminal.

    Args:
        explained: The explanation.
        width: The columns of the terminal; without it no line is wrapped.
    """
    lines = [wrapped(f"{explained.id}  {explained.promise}", width, indent=4), ""]
    lines += [wrapped(line, width, indent=15) for line in _facts(explained)]
    for scenario in explained.scenarios:
        lines += ["", wrapped(f"{scenario.id}  {scenario.name}", width, indent=4)]
        lines.append(f"  {scenario.file}:{scenario.line}")
        lines += [f"  {row}" for row in scenario.rows]
        for label, named in (("finds", scenario.anomalies), ("needs", scenario.needs)):
            if named:
                lines.append(wrapped(f"  {label}: {', '.join(named)}", width, indent=9))
        lines += ["", indent(scenario.gherkin, "  ")]
    return "\n".join(lines) + "\n"


def _facts(explained: Explanation) -> Iterator[str]:
    """Go through the lines that say where a promise comes from, and what it means."""
    if explained.source:
        title = explained.title or explained.source
        yield f"Documented in: {title}, “{explained.section}”"
    else:
        yield "Beyond the articles."
    yield f"Programs:      {', '.join(explained.programs)}"
    yield from (f"Part:          {part}" for part in explained.parts)
    yield from (f"Broken by:     {reason}" for reason in explained.broken_by)
    yield from (f"Costs:         {cost}" for cost in explained.costs)
    if explained.status == "untested":
        yield f"Untested:      {explained.why}"
