"""Write docs/vocabulary.md: each sentence of the features, with an example.

python tools/vocabulary.py            write the page
python tools/vocabulary.py --check    exit with 1 if the page is missing or out of date
"""

import argparse
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple

from pytest_bdd.steps import StepFunctionContext

from upheld.lint import matches, step_definitions
from upheld.lint.grammar import TEMPLATES_MAX
from upheld.programs import PROGRAMS
from upheld.spec import catalogue
from upheld.spec.gherkin import Step
from upheld.steps.deployment import SETTINGS
from upheld.steps.parameters import TYPES, ParameterType
from upheld.steps.scene import PARTITIONS
from upheld.trial.deployment import TRANSACTION_TIMEOUT_MS

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "vocabulary.md"
CONFIGURATION: Final = "its configuration is:"
CONCEPTS: Final = (
    "deployment",
    "workload",
    "joins",
    "lifecycle",
    "crashes",
    "requests",
    "environment",
    "claims",
)
WIDTH: Final = 98
BEGINNING: Final = """\
# Vocabulary

The sentences that a feature may say: {templates} templates, {most} at most. Each says one fact.
A word in braces is a parameter and its type; the types stand [at the end](#types). Beside a
sentence is the number of the {rows} rows that say it, and below it a line of one of them.

“It” is the application under test. Records and keys are those of its program: a ledger reads
entries and sums accounts, a batcher reads events of customers, a pulse reads signals of robots.
The Given lines describe a deployment; a number that `its configuration is:` does not set has its
[usual value](#usual-values). What a scenario needs of the machine is a tag: `@wire` puts a proxy
between the application and the broker, `@cluster` gives it three brokers, and beside a `@timed`
scenario nothing boots.

`python tools/vocabulary.py` writes this page.
"""


class Use(NamedTuple):
    """A template, and how the features use it."""

    keyword: str
    template: str
    rows: int
    example: str
    scenario: str


def uses() -> dict[str, list[Use]]:
    """Return the templates by concept, in the order of their definitions."""
    definitions = [found for found in step_definitions() if found.type]
    said: dict[str, set[str]] = defaultdict(set)
    examples: dict[str, tuple[Step, str]] = {}
    names: dict[tuple[str | None, str], str] = {}
    found = catalogue.load()
    for scenario in found.scenarios:
        for row in scenario.rows:
            for step in row.steps:
                key = step.type, step.text
                if key not in names:
                    names[key] = next(d.parser.name for d in definitions if matches(d, step))
                name = names[key]
                said[name].add(row.id)
                examples.setdefault(name, (step, scenario.id))
    by_concept: dict[str, list[Use]] = defaultdict(list)
    for definition in sorted(definitions, key=_line):
        name = definition.parser.name
        step, scenario_id = examples[name]
        concept = definition.step_func.__module__.rpartition(".")[2]
        keyword = (definition.type or "").capitalize()
        by_concept[concept].append(Use(keyword, name, len(said[name]), step.text, scenario_id))
    return by_concept


def _line(definition: StepFunctionContext) -> tuple[int, str]:
    return definition.step_func.__code__.co_firstlineno, definition.parser.name


def settings() -> Iterator[str]:
    """Yield each setting of the configuration table, with a value of a feature."""
    values: dict[str, str] = {}
    for scenario in catalogue.load().scenarios:
        for step in (step for row in scenario.rows for step in row.steps):
            if step.text == CONFIGURATION:
                values = dict(step.table) | values
    yield from (f"- `{name}`, such as `{values[name]}`" for name in SETTINGS)


def usual() -> Iterator[str]:
    """Yield the values that hold where no scenario sets another one."""
    yield f"- an input has {PARTITIONS} partitions"
    yield f"- a transaction has a timeout of {TRANSACTION_TIMEOUT_MS} ms"
    for name, program in sorted(PROGRAMS.items()):
        own = ", ".join(f"`{key}` {value}" for key, value in program.parameters.items())
        yield f"- {name}: {own}"


def types() -> Iterator[str]:
    """Yield each type of parameter, with what may stand in its place."""
    for name, kind in sorted(TYPES.items()):
        yield f"- `{name}`: {_values(kind)}"


def _values(kind: ParameterType) -> str:
    if kind.known:
        return ", ".join(f"“{text}”" for text in sorted(kind.known))
    return f"`{kind.pattern}`"


def wrapped(item: str) -> str:
    """Break the lines of an item of a list at the width of the page."""
    lines = textwrap.wrap(item, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    return "\n".join(lines)


def page() -> str:
    """Return the text of the page."""
    by_concept = uses()
    count = sum(map(len, by_concept.values()))
    rows = sum(len(scenario.rows) for scenario in catalogue.load().scenarios)
    parts = [BEGINNING.format(templates=count, most=TEMPLATES_MAX, rows=rows)]
    for concept in CONCEPTS:
        doc = import_module(f"upheld.steps.{concept}").__doc__ or ""
        parts.append(f"\n## {concept.capitalize()}\n\n{doc.strip()}\n\n")
        for use in by_concept.pop(concept):
            parts.append(f"- {use.keyword} `{use.template}` ({use.rows})\n")
            example = f"“{use.example}”, as in {use.scenario}"
            parts.append(f"  {wrapped(example)}\n")
        if concept == "deployment":
            parts.append(f"\nThe settings of `{CONFIGURATION}`\n\n" + "\n".join(settings()) + "\n")
    if by_concept:
        raise SystemExit(f"no concept for {', '.join(by_concept)}: add it to CONCEPTS")
    parts.append("\n## Usual values\n\n" + "\n".join(map(wrapped, usual())) + "\n")
    parts.append("\n## Types\n\n" + "\n".join(map(wrapped, types())) + "\n")
    return "".join(parts)


def out_of_date(path: Path = PAGE) -> Iterator[str]:
    """Yield why the page has to be written again; nothing if it is up to date."""
    if not path.exists():
        yield f"{path} is missing"
    elif path.read_text(encoding="utf-8") != page():
        yield f"{path} is out of date"


def main(arguments: Sequence[str] | None = None, path: Path = PAGE) -> int:
    """Write the page, or check it; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, exit with 1")
    if parser.parse_args(arguments).check:
        found = list(out_of_date(path))
        print("\n".join(found) or f"{path} is up to date")
        return int(bool(found))
    path.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
