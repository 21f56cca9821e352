"""A scenario asks for a shape, unless its promise hangs on a program of ours."""

from collections.abc import Iterator
from typing import Final

from upheld.judging.prerequisites import fits
from upheld.shapes import INSTANCES
from upheld.spec.catalogue import Catalogue
from upheld.spec.gherkin import Scenario

# What only a shipped program has: its envelope, its several topics, and the form of its records.
OF_PROGRAMS: Final = (
    "{count:d} republished records over {keys:d} keys are in {place:Place}",
    "{count:d} rehomed records over {keys:d} keys are in {place:Place}",
    "{count:d} names over {keys:d} keys are in {place:Place}",
    "some records of its input cannot be read",
    "a record {flaw:Flaw} arrives in {place:Place}",
    "no entry is applied to some of its accounts only",
    "every output carries the id, timestamp, headers and positions of its input",
    "a relay in mode {mode:Mode} feeds it",
    "a second application runs the same program in mode {mode:Mode}",
)


def breaches(catalogue: Catalogue) -> Iterator[str]:
    """Go through scenarios that name a program for no reason.

    Those that ask for a shape, though a sentence hangs on a program, are among them.
    """
    for scenario in catalogue.scenarios:
        said = _of_a_program(scenario)
        for row in scenario.rows:
            where = f"{scenario.feature.file}:{row.line}"
            if row.shape and said:
                yield (
                    f"{where}: “{said}” is true of {row.program} alone; name the program, not its "
                    "shape."
                )
            if not row.shape and not said and row.program in INSTANCES.values():
                (shape,) = (each for each, name in INSTANCES.items() if name == row.program)
                yield (
                    f"{where}: no sentence hangs on {row.program}; ask for its shape, “a {shape} "
                    "in mode …”."
                )


def _of_a_program(scenario: Scenario) -> str:
    """Return the first sentence that only a shipped program bears; empty if there is none."""
    sentences = (step.text for row in scenario.rows for step in row.steps)
    own = (each for each in sentences if any(fits(of, each) for of in OF_PROGRAMS))
    return next(own, "")
