"""The lint of the specification: it refuses features that pass without judging.

pytest-bdd drops the first of two scenarios of one name. Of two step definitions that match, it
takes the last. It passes a scenario with no steps. It never reports a sentence that no feature
uses. A finding begins with the file and line that it is about, and says what to do.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Final

from pytest_bdd.steps import StepFunctionContext, step_function_context_registry

import upheld
from upheld.judging.claims import claims_of
from upheld.lint import grammar, shapes
from upheld.lint.cover import breaches
from upheld.programs import PROGRAMS
from upheld.protocol.manifest import Manifest, shipped
from upheld.protocol.manifest import load as load_design
from upheld.protocol.messages import MODES
from upheld.reading import read_text
from upheld.spec.catalogue import (
    EVERY_PROGRAM,
    FEATURES,
    FILE_NAME,
    Catalogue,
    load,
    parts_of,
)
from upheld.spec.depths import DEPTH_TAGS
from upheld.spec.gherkin import (
    ID_TAG,
    ON_A_CLUSTER,
    THROUGH_PROXY,
    TIMED,
    Scenario,
    Step,
)

LAST_STEP: Final = "nothing else changes on the broker"

_PLACEHOLDER: Final = re.compile(r"<([^<>]+)>")
_SHOULD: Final = re.compile(r"\bshould\b", re.IGNORECASE)
_WORKLOAD: Final = re.compile(r"(\d+) (?:\w+ )?records over \d+ keys are in")
USUAL_RECORDS: Final = 4000
_NEEDS: Final = {  # tag -> the lines that need it
    THROUGH_PROXY: re.compile(r"\bits next [A-Z]|\bthe broker is out of its reach\b"),
    ON_A_CLUSTER: re.compile(
        r"\bits transaction coordinator fails over\b|\bwith a leader of its outputs silent\b"
    ),
}

Rule = Callable[[Catalogue], Iterator[str]]


def lint(
    features: Path = FEATURES,
    steps: Sequence[StepFunctionContext] | None = None,
    wrong: Sequence[Manifest] | None = None,
) -> list[str]:
    """Find what is wrong with a folder of features, their sentences and their depths.

    Args:
        features: The folder.
        steps: The step definitions; those of the package if it is None.
        wrong: The wrong designs that `core` has to catch; the shipped ones if it is None.
    """
    catalogue = load(features)
    definitions = step_definitions() if steps is None else steps
    designs = shipped_wrong() if wrong is None else wrong
    findings = [finding for rule in _RULES for finding in rule(catalogue)]
    findings += _sentences(catalogue, definitions)
    findings += _unused(catalogue, definitions)
    findings += grammar.breaches(definitions)
    findings += _plain_words(features)
    findings += [
        f"depths: {breach}, and the features do not have it so."
        for breach in breaches(catalogue, designs)
    ]
    return findings


def lint_own(catalogue: Catalogue) -> Iterator[str]:
    """Find what keeps scenarios of a user's own from being judged.

    Args:
        catalogue: The guarantees, and these scenarios alone.
    """
    for rule in (_names, _ids, _shapes, _machine, _rows):
        yield from rule(catalogue)
    yield from _sentences(catalogue, step_definitions())


def shipped_wrong() -> list[Manifest]:
    """Load the wrong designs that come with the package."""
    return [design for design in map(load_design, shipped()) if design.sin]


def step_definitions(package: str = "upheld.steps") -> list[StepFunctionContext]:
    """Import every module of the package and collect the sentences that it defines."""
    root = import_module(package)
    names = {package} | {found.name for found in walk_packages(root.__path__, f"{package}.")}
    for name in sorted(names):
        import_module(name)
    return [
        found
        for found in step_function_context_registry.values()
        if found.step_func.__module__ in names
    ]


def _heads(catalogue: Catalogue) -> Iterator[str]:
    """Demand that a feature's head has its four parts.

    They are the promise, where it is documented, what breaks it and what it costs.
    """
    inhabited = {scenario.feature for scenario in catalogue.scenarios}
    for feature in catalogue.features:
        if feature not in inhabited:
            yield f"{feature.file}:{feature.line}: the feature has no scenario."
        parts = {
            "promise in one sentence": feature.promise,
            "line “Documented in:”": feature.documented_in,
            "line “Broken by:”": feature.broken_by,
            "line “Costs:”": feature.costs,
        }
        for part, text in parts.items():
            if not text:
                yield f"{feature.file}:{feature.line}: the feature's head has no {part}."


def _names(catalogue: Catalogue) -> Iterator[str]:
    """Refuse two scenarios of one name: pytest-bdd runs one of them."""
    first: dict[str, Scenario] = {}
    for scenario in catalogue.scenarios:
        if not scenario.name:
            yield (
                f"{scenario.place}: the scenario has no name; a name is a claim that can be read "
                "alone."
            )
        elif (other := first.setdefault(scenario.name, scenario)) is not scenario:
            yield (
                f"{scenario.place}: the name “{scenario.name}” is taken by {other.place}; find "
                "another."
            )


def _ids(catalogue: Catalogue) -> Iterator[str]:
    """Demand one id of each scenario, of a guarantee that the catalogue specifies."""
    first: dict[str, Scenario] = {}
    for scenario in catalogue.scenarios:
        if len(scenario.ids) != 1:
            found = ", ".join(scenario.ids) or "none"
            yield (
                f"{scenario.place}: a scenario has one id tag such as @G22.slug; this one has "
                f"{found}."
            )
        for tag in sorted(scenario.tags - {f"@{name}" for name in scenario.ids}):
            if ID_TAG.fullmatch(tag):
                yield (
                    f"{scenario.place}: the id {tag} stands above the scenario; it belongs to one "
                    "alone."
                )
        for name in scenario.ids:
            if (other := first.setdefault(name, scenario)) is not scenario:
                yield (
                    f"{scenario.place}: the id {name} is taken by {other.place}; ids are never "
                    "reused."
                )
            guarantee = catalogue.guarantees.get(name.partition(".")[0])
            if guarantee is None:
                yield f"{scenario.place}: {FILE_NAME} has no guarantee for the id {name}."
            elif not guarantee.specified:
                yield (
                    f"{scenario.place}: {FILE_NAME} says that {guarantee.id} is untested; say "
                    "specified."
                )


def _tags(catalogue: Catalogue) -> Iterator[str]:
    """Demand that every tag is an id or stands in the catalogue.

    Tags on Examples bypass pytest-bdd's hook.
    """
    for scenario in catalogue.scenarios:
        for tag in sorted(scenario.tags):
            if not ID_TAG.fullmatch(tag) and tag.removeprefix("@") not in catalogue.tags:
                yield (
                    f"{scenario.place}: the tag {tag} is unknown; drop it or add it to {FILE_NAME}."
                )
        for tag in scenario.example_tags:
            if tag not in DEPTH_TAGS:
                yield (
                    f"{scenario.place}: {tag} on Examples is not seen by the run; tag the scenario."
                )
        if f"@{scenario.family}" not in scenario.tags:
            yield (
                f"{scenario.place}: the tag @{scenario.family} of its family, its folder, is "
                "missing."
            )


def _guarantees(catalogue: Catalogue) -> Iterator[str]:
    """Demand a scenario or a reason of every guarantee.

    A compound promise has a scenario for each part.
    """
    slugs = defaultdict[str, set[str]](set)
    for scenario in catalogue.scenarios:
        slugs[scenario.guarantee].add(scenario.id)
    for guarantee in catalogue.guarantees.values():
        found = len(slugs[guarantee.id])
        if guarantee.specified and not found:
            yield (
                f"{FILE_NAME}: {guarantee.id} has no scenario; write one, or say untested and why."
            )
        elif guarantee.specified and found < len(guarantee.parts):
            parts = "; ".join(guarantee.parts)
            yield (
                f"{FILE_NAME}: {guarantee.id} has fewer scenarios ({found}) than parts to "
                f"promise: {parts}."
            )


def _shapes(catalogue: Catalogue) -> Iterator[str]:
    """Demand steps, an end on side effects, and the use of every column of Examples."""
    for scenario in catalogue.scenarios:
        if not scenario.steps:
            yield f"{scenario.place}: the scenario has no steps, so it would pass."
            continue
        if not scenario.rows:
            yield f"{scenario.place}: the Examples have no rows, so nothing is judged."
        last = scenario.steps[-1]
        if last.type != "then" or last.text != LAST_STEP:
            where = f"{scenario.feature.file}:{last.line}"
            yield f"{where}: a scenario ends on its side effects: “And {LAST_STEP}”."
        used = {name for step in scenario.steps for name in _PLACEHOLDER.findall(step.whole)}
        used.update(_PLACEHOLDER.findall(scenario.name))
        for name in sorted(used - set(scenario.columns)):
            yield f"{scenario.place}: <{name}> is no column of the Examples."
        for name in sorted(set(scenario.columns) - used):
            yield f"{scenario.place}: no sentence uses the column {name} of the Examples."


def _rows(catalogue: Catalogue) -> Iterator[str]:
    """Demand program and mode of every row, and that no two rows have one name."""
    for scenario in catalogue.scenarios:
        guarantee = catalogue.guarantees.get(scenario.guarantee)
        named = Counter(row.id for row in scenario.rows)
        for row in scenario.rows if scenario.steps else ():
            where = f"{scenario.feature.file}:{row.line}"
            if not row.program or not row.mode:
                yield (f"{where}: no sentence says what runs, as in “a fold in mode exactly_once”.")
                continue
            if row.program not in PROGRAMS:
                yield f"{where}: {row.program} is no program; there are {', '.join(PROGRAMS)}."
            elif guarantee and not {row.program, EVERY_PROGRAM} & set(guarantee.programs):
                listed = ", ".join(guarantee.programs)
                yield (
                    f"{where}: {guarantee.id} is promised of {listed} in {FILE_NAME}, not of "
                    f"{row.program}."
                )
            if row.mode not in MODES:
                yield f"{where}: {row.mode} is no mode; there are {' and '.join(MODES)}."
            if named[row.id] > 1:
                yield (
                    f"{where}: {named[row.id]} rows are called {row.id}; each program and mode "
                    "comes once."
                )


def _depths(catalogue: Catalogue) -> Iterator[str]:
    """Demand one depth of every row, above its Examples table."""
    for scenario in catalogue.scenarios:
        for tag in sorted(scenario.tags & set(DEPTH_TAGS)) if scenario.columns else ():
            yield (
                f"{scenario.place}: {tag} stands above the scenario; it belongs above its Examples."
            )
        for row in scenario.rows:
            given = [tag for tag in DEPTH_TAGS if tag in row.tags]
            if len(given) != 1:
                said = " and ".join(given) or "none"
                one_of = " or ".join(DEPTH_TAGS)
                place = f"{scenario.feature.file}:{row.line}"
                yield (
                    f"{place}: a row has one depth, {one_of}, above its Examples; this one has "
                    f"{said}."
                )


def _versions(catalogue: Catalogue) -> Iterator[str]:
    """Refuse a later version than this one, and a version of a row that is none."""
    now = parts_of(upheld.__version__)
    for guarantee in catalogue.guarantees.values():
        for what, since in {guarantee.id: guarantee.since, **guarantee.rows_since}.items():
            if parts_of(since) > now:
                yield (
                    f"{FILE_NAME}: {what} is there since {since}, and this is {upheld.__version__}."
                )
        for row in guarantee.rows_since:
            scenario = catalogue.by_row.get(row)
            if not scenario or scenario.guarantee != guarantee.id:
                yield (
                    f"{FILE_NAME}: rows_since of {guarantee.id} names {row}, which is no row of it."
                )


def _machine(catalogue: Catalogue) -> Iterator[str]:
    """Demand a tag for each need of a scenario: a proxy, a cluster, or quiet."""
    for scenario in catalogue.scenarios:
        needed = {
            tag
            for tag, lines in _NEEDS.items()
            if any(lines.search(step.text) for row in scenario.rows for step in row.steps)
        }
        if any(claim.is_timed for row in scenario.rows for claim in claims_of(row)):
            needed.add(TIMED)
        for tag in sorted(needed - scenario.tags):
            yield f"{scenario.place}: a line of the scenario needs {tag}; tag the scenario."
        for tag in sorted((scenario.tags & {*_NEEDS, TIMED}) - needed):
            yield f"{scenario.place}: no line of the scenario needs {tag}; drop the tag."


_RULES: Final[tuple[Rule, ...]] = (
    _heads,
    _names,
    _ids,
    _tags,
    _depths,
    _guarantees,
    _versions,
    _shapes,
    shapes.breaches,
    _machine,
    _rows,
)


def _sentences(catalogue: Catalogue, definitions: Sequence[StepFunctionContext]) -> Iterator[str]:
    """Demand exactly one definition of every step."""
    told: set[tuple[str | None, str]] = set()
    for scenario in catalogue.scenarios:
        for step in (step for row in scenario.rows for step in row.steps):
            matching = [found for found in definitions if matches(found, step)]
            if len(matching) == 1 or (step.type, step.text) in told:
                continue
            told.add((step.type, step.text))
            where, says = f"{scenario.feature.file}:{step.line}", f"“{step.text}”"
            if matching:
                both = " and ".join(grammar.place(found) for found in matching)
                yield (
                    f"{where}: {len(matching)} step definitions match {says}, the last would win: "
                    f"{both}."
                )
            else:
                yield (
                    f"{where}: no step definition matches {says} as a "
                    f"{step.type or 'step of any kind'}."
                )


def _unused(catalogue: Catalogue, definitions: Sequence[StepFunctionContext]) -> Iterator[str]:
    """Demand a step of every definition."""
    steps = {(step.type, step.text): step for step in _steps(catalogue)}.values()
    for found in definitions:
        if not any(matches(found, step) for step in steps):
            yield f"{grammar.place(found)}: no feature uses this sentence; remove it."


def _steps(catalogue: Catalogue) -> Iterator[Step]:
    """Go through the steps of all rows."""
    return (step for scenario in catalogue.scenarios for row in scenario.rows for step in row.steps)


def matches(definition: StepFunctionContext, step: Step) -> bool:
    """Return whether a step of a scenario is a sentence of this definition."""
    return definition.type in {None, step.type} and definition.parser.is_matching(step.text)


def _plain_words(features: Path) -> Iterator[str]:
    """Demand plain present tense, and a reason for a workload below the usual.

    The reason is a comment above the line.
    """
    for path in sorted(features.rglob("*.feature")):
        above = ""
        for number, line in enumerate(read_text(path).splitlines(), 1):
            place = f"{path.relative_to(features).as_posix()}:{number}"
            if _SHOULD.search(line):
                yield f"{place}: “should” is no plain present tense; say what happens."
            workload = _WORKLOAD.search(line)
            if workload and int(workload[1]) < USUAL_RECORDS and not above.lstrip().startswith("#"):
                yield (
                    f"{place}: fewer than the usual {USUAL_RECORDS} records; a comment above says "
                    "why, or use as many."
                )
            above = line
