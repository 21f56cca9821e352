"""Write the pages of the guarantees, one each, for the documentation site.

They are made when the site is built, and are not kept: each repeats lines of a feature. `upheld
explain` says the same on a terminal.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import verdicts
from pages import DOCS, listed

from upheld.judging.claims import anomalies_of
from upheld.protocol.manifest import Manifest, load, shipped
from upheld.spec import catalogue, durations, kills
from upheld.spec.catalogue import Catalogue, Guarantee
from upheld.spec.explain import ExplainedScenario, Explanation, explanation
from upheld.spec.gherkin import Row

FOLDER: Final = "guarantees"  # of the pages, in the folder of the site's sources
DESIGNS: Final = verdicts.DESIGNS


class Caught(NamedTuple):
    """A wrong design that rows of a guarantee catch."""

    design: str
    mistake: str
    rows: tuple[str, ...]
    anomaly: str

    def line(self) -> str:
        """Return the design's line of the table."""
        rows = ", ".join(f"`{row}`" for row in self.rows)
        return f"| `{self.design}` | {self.mistake} | {rows} | {link(self.anomaly)} |"


@cache
def _found() -> Catalogue:
    return catalogue.load()


@cache
def _durations() -> durations.Durations:
    return durations.load()


@cache
def _kills() -> kills.Kills:
    return kills.load()


def link(anomaly: str) -> str:
    """Return a link to the description of an anomaly, from the page of a guarantee."""
    return f"[`{anomaly}`](../anomalies.md#{anomaly})"


def title(guarantee: Guarantee) -> str:
    """Return the id, and the name of the first feature that judges the guarantee."""
    for scenario in _found().scenarios:
        if scenario.guarantee == guarantee.id:
            return f"{guarantee.id}: {scenario.feature.name}"
    return guarantee.id


@cache
def _wrong() -> Mapping[str, Manifest]:
    """Return the shipped wrong designs by their names."""
    found = {name: load(name) for name in shipped()}
    return {name: design for name, design in found.items() if design.sin}


@cache
def mistake(design: str) -> str:
    """Return the first sentence of a wrong design: what it does wrong."""
    main = DOCS.parent / "impl" / design / "__main__.py"
    source = main.read_text(encoding="utf-8")
    return source.removeprefix('"""').partition("\n")[0].removesuffix('"""')


def caught(own: Mapping[str, Row], scenarios: frozenset[str]) -> Iterator[Caught]:
    """Go through the wrong designs that rows catch, by their word or as measured."""
    matrix = _kills()
    for name, design in _wrong().items():
        assert design.sin
        known = matrix.designs.get(name, kills.Judged()).killed
        rows = {row: known[row].anomaly for row in known if row in own}
        for named in design.sin.scenarios:
            is_shown = any(row.startswith(f"{named}[") for row in rows)
            if (named in own or named in scenarios) and not is_shown:
                rows.setdefault(named, design.sin.anomaly)
        if rows:
            yield Caught(name, mistake(name), tuple(rows), next(iter(rows.values())))


def page(guarantee: Guarantee) -> str:
    """Return the page of a guarantee."""
    found = _found()
    explained = explanation(found, guarantee.id, anomalies_of)
    return "\n".join(_parts(guarantee, explained))


def _parts(guarantee: Guarantee, explained: Explanation) -> Iterator[str]:
    found = _found()
    yield f"# {title(guarantee)}\n\n**{guarantee.promise}**\n"
    yield _head(guarantee, explained)
    if explained.broken_by:
        yield f"## What breaks it\n\n{listed(_sentences(explained.broken_by))}"
    if guarantee.why:
        yield f"## Why no scenario judges it\n\n{guarantee.why}\n"
        return
    rows = {row.id: row for each in explained.scenarios for row in found.by_id[each.id].rows}
    yield f"## What it costs\n\n{listed([*_sentences(explained.costs), *_seconds(rows)])}"
    yield "## Scenarios\n"
    for scenario in explained.scenarios:
        yield _scenario(scenario)
    named = dict.fromkeys(name for each in explained.scenarios for name in each.anomalies)
    yield f"## Anomalies\n\nIts rows can name {', '.join(map(link, named))}.\n"
    designs = list(caught(rows, frozenset(each.id for each in explained.scenarios)))
    if designs:
        lines = "\n".join(each.line() for each in designs)
        yield (
            "## Wrong designs that it catches\n\n"
            "| design | its mistake | caught by | first anomaly |\n|---|---|---|---|\n"
            f"{lines}\n"
        )
    yield _verdicts(guarantee)


def _head(guarantee: Guarantee, explained: Explanation) -> str:
    family = guarantee.family
    source = "no article: it goes beyond them"
    if guarantee.source:
        source = f"{explained.title or guarantee.source}, “{guarantee.section}”"
    lines = [
        f"| family | {family.replace('_', ' ')}: {_found().tags[family]} |",
        f"| source | {source} |",
        f"| programs | {', '.join(guarantee.programs)} |",
        f"| judged since | {guarantee.since} |",
    ]
    lines += [f"| part | {part} |" for part in guarantee.parts]
    return "\n".join([f"| {guarantee.id} | |", "|---|---|", *lines, ""])


def _sentences(said: list[str]) -> list[str]:
    return [f"{each[0].upper()}{each[1:]}" for each in said]


def _seconds(rows: Mapping[str, Row]) -> Iterator[str]:
    """Say for each design that ships what all rows of a guarantee take."""
    recorded = _durations().designs
    for design in DESIGNS:
        own = [recorded[design].rows_s[row] for row in rows if row in recorded[design].rows_s]
        if own:
            share = f"{len(own)} of {len(rows)}"
            yield f"{share} rows took {sum(own):.0f} s with `{design}`, as recorded."


def _scenario(scenario: ExplainedScenario) -> str:
    found = _found().by_id[scenario.id]
    recorded = _durations().designs
    columns = " | ".join(f"`{design}`" for design in DESIGNS)
    lines = [f"| row | depth | {columns} |", "|---|---|" + "---|" * len(DESIGNS)]
    for row in found.rows:
        took = [recorded[design].rows_s.get(row.id) for design in DESIGNS]
        cells = " | ".join("-" if each is None else f"{each:.1f} s" for each in took)
        lines.append(f"| `{row.id}` | {row.depth} | {cells} |")
    table = "\n".join(lines)
    return (
        f"### {scenario.id}\n\n{scenario.name[0].upper()}{scenario.name[1:]}. It stands in "
        f"`features/{scenario.file}`, line {scenario.line}.\n\n"
        f"```gherkin\n{found.source}\n```\n\n{table}\n"
    )


def _verdicts(guarantee: Guarantee) -> str:
    cells = _cells()
    lines = [
        f"| `{design}` | {cells.get(verdicts.Place(guarantee.id, design), '-')} |"
        for design in DESIGNS
    ]
    return "\n".join(
        ["## Verdicts of the designs that ship\n", "| design | rows |", "|---|---|", *lines, ""]
    )


@cache
def _cells() -> Mapping[verdicts.Place, str]:
    return verdicts.cells_in(verdicts.TABLE.of(verdicts.VERDICTS))


def index() -> str:
    """Return the page that lists all guarantees by family."""
    found = _found()
    parts = [
        "# Guarantees\n",
        "Each guarantee is one promise. Its page has the source, the scenarios, what they catch, "
        "and the verdicts of the designs that ship.\n",
    ]
    for family, members in by_family().items():
        what = found.tags[family]
        parts.append(f"## {family.replace('_', ' ').capitalize()}\n\n{what.capitalize()}.\n")
        lines = ["| | promise | " + " | ".join(f"`{d}`" for d in DESIGNS) + " |"]
        lines.append("|---|---|" + "---|" * len(DESIGNS))
        for each in members:
            cells = " | ".join(_cells().get(verdicts.Place(each.id, d), "-") for d in DESIGNS)
            lines.append(f"| [{each.id}]({each.id}.md) | {each.promise} | {cells} |")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def by_family() -> Mapping[str, list[Guarantee]]:
    """Return the guarantees of each family, in the order of the catalogue."""
    found: dict[str, list[Guarantee]] = {}
    for guarantee in _found().guarantees.values():
        found.setdefault(guarantee.family, []).append(guarantee)
    return found


def write(docs: Path) -> None:
    """Write every page below the folder of the site's sources."""
    folder = docs / FOLDER
    folder.mkdir(parents=True)
    (folder / "index.md").write_text(index(), encoding="utf-8")
    for guarantee in _found().guarantees.values():
        (folder / f"{guarantee.id}.md").write_text(page(guarantee), encoding="utf-8")
