"""The words of the catalogue that a report shows beside its verdicts."""

from collections.abc import Iterator
from typing import NamedTuple

from upheld.spec.catalogue import Catalogue


class ScenarioText(NamedTuple):
    """A scenario as its feature has it.

    Attributes:
        id: Such as `G22.dies-after-a-commit`.
        name: Its claim.
        file: The path of the feature, below `features`.
        gherkin: Its lines, with tags, tables and Examples.
    """

    id: str
    name: str
    file: str
    gherkin: str


class GuaranteeText(NamedTuple):
    """A guarantee as the catalogue has it.

    Attributes:
        family: The name of its family.
        meaning: What the family is about.
        source: The article and the section that document it; empty if it goes beyond them.
        scenarios: Its scenarios, in the order of the features.
    """

    family: str
    meaning: str
    source: str
    scenarios: tuple[ScenarioText, ...]


def texts(known: Catalogue) -> Iterator[tuple[str, GuaranteeText]]:
    """Go through what the catalogue says of each guarantee."""
    for guarantee in known.guarantees.values():
        source = ""
        if guarantee.source:
            source = f"{known.sources[guarantee.source]}, {guarantee.section}"
        scenarios = [each for each in known.scenarios if each.guarantee == guarantee.id]
        texts = tuple(
            ScenarioText(each.id, each.name, f"features/{each.place}", each.source)
            for each in scenarios
        )
        yield (
            guarantee.id,
            GuaranteeText(
                guarantee.family.replace("_", " "), known.tags[guarantee.family], source, texts
            ),
        )
