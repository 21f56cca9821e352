"""The output of `upheld list` and `upheld explain`, as data and as text."""

from collections.abc import Callable, Iterable, Iterator
from typing import NotRequired, TypedDict

from pydantic import BaseModel, ConfigDict

from upheld.protocol.manifest import Manifest
from upheld.spec.catalogue import Catalogue, Guarantee
from upheld.spec.depths import Depth
from upheld.spec.gherkin import Scenario
from upheld.spec.selection import Chosen, is_usual, promised


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
    found: Catalogue, name: str, anomalies_of: Callable[[Scenario], Iterable[str]] = lambda _: ()
) -> Explanation:
    """Explain a guarantee.

    Args:
        found: The catalogue.
        name: The id of the guarantee, or of one of its scenarios or rows.
        anomalies_of: Names the anomalies that a scenario can find.

    Raises:
        UsageProblem: There is no such guarantee.
    """
    guarantee = found.guarantee(name)
    scenarios = [scenario for scenario in found.scenarios if scenario.guarantee == guarantee.id]
    features = {scenario.feature.file: scenario.feature for scenario in scenarios}.values()
    return Explanation(
        **guarantee.model_dump(),
        title=found.sources.get(guarantee.source or ""),
        broken_by=[feature.broken_by for feature in features if feature.broken_by],
        costs=[feature.costs for feature in features if feature.costs],
        scenarios=[_explained(scenario, anomalies_of(scenario)) for scenario in scenarios],
    )


def _explained(scenario: Scenario, anomalies: Iterable[str]) -> ExplainedScenario:
    return ExplainedScenario(
        id=scenario.id,
        name=scenario.name,
        file=scenario.feature.file,
        line=scenario.line,
        rows=[row.id for row in scenario.rows],
        anomalies=list(anomalies),
    )


def as_text(explained: Explanation) -> str:
    """Set an explanation for a terminal."""
    lines = [f"{explained.id}  {explained.promise}", ""]
    if explained.source:
        title = explained.title or explained.source
        lines.append(f"Documented in: {title}, “{explained.section}”")
    else:
        lines.append("Beyond the articles.")
    lines.append(f"Programs:      {', '.join(explained.programs)}")
    lines += [f"Part:          {part}" for part in explained.parts]
    lines += [f"Broken by:     {reason}" for reason in explained.broken_by]
    lines += [f"Costs:         {cost}" for cost in explained.costs]
    if explained.status == "untested":
        lines.append(f"Untested:      {explained.why}")
    for scenario in explained.scenarios:
        lines += ["", f"{scenario.id}  {scenario.name}", f"  {scenario.file}:{scenario.line}"]
        lines += [f"  {row}" for row in scenario.rows]
        if scenario.anomalies:
            lines.append(f"  finds: {', '.join(scenario.anomalies)}")
    return "\n".join(lines) + "\n"
