"""Scenarios of a user's own, in our sentences, beside those that ship."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from upheld.errors import UsageProblem
from upheld.lint import lint_own
from upheld.reading import is_file, is_folder
from upheld.spec.catalogue import Catalogue
from upheld.spec.depths import DEPTH_TAGS
from upheld.spec.gherkin import Scenario, read_feature


def with_own(known: Catalogue, places: Iterable[Path]) -> Catalogue:
    """Return the catalogue with the scenarios of these features, too.

    Each scenario is an address of a guarantee that ships, such as `@G22.of-our-orders`. Its rows
    are judged at every depth, unless a tag says another.

    Args:
        known: The catalogue.
        places: Folders of features, or files.

    Raises:
        UsageProblem: There is no feature, or a scenario cannot be judged.
    """
    files = tuple(dict.fromkeys(file.resolve() for place in places for file in _files(place)))
    read = [read_feature(file, str(file)) for file in files]
    own = replace(
        known,
        features=tuple(each.feature for each in read),
        scenarios=tuple(_deep(scenario) for each in read for scenario in each.scenarios),
    )
    for scenario in own.scenarios:
        if taken := known.by_id.get(scenario.id):
            raise UsageProblem(
                f"{scenario.place}: the id {scenario.id} is taken by {taken.place}; find another."
            )
    for finding in lint_own(own):
        raise UsageProblem(finding)
    return replace(
        known,
        features=(*known.features, *own.features),
        scenarios=(*known.scenarios, *own.scenarios),
        own=(*known.own, *files),
    )


def _deep(scenario: Scenario) -> Scenario:
    """Return a scenario whose rows are judged at every depth, unless a tag says another."""
    rows = tuple(
        row if row.tags & set(DEPTH_TAGS) else replace(row, tags=row.tags | {DEPTH_TAGS[0]})
        for row in scenario.rows
    )
    return replace(scenario, rows=rows)


def _files(place: Path) -> Iterator[Path]:
    """Go through the features at a place.

    Raises:
        UsageProblem: There are none.
    """
    files = sorted(place.rglob("*.feature")) if is_folder(place) else [place]
    if not files or not all(map(is_file, files)):
        raise UsageProblem(f"{place} is no feature, and no folder that has one.")
    yield from files
