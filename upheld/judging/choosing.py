"""The choice of rows, with others where an application lacks something.

The rows of a depth are those that are cheap for the shipped programs. They may ask for a store of
ours, a standby or an interval to be told. Hardly any application without an adapter has these. If
all rows of a guarantee at the depth are unsupported, another one stands in. It is the cheapest of
those that a fault strikes, or else of all that can be judged.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import replace

from upheld.judging.prerequisites import ruled_out
from upheld.protocol.manifest import Manifest
from upheld.spec import durations, selection
from upheld.spec.catalogue import Catalogue
from upheld.spec.fault_families import families
from upheld.spec.gherkin import Row
from upheld.spec.selection import Request, Rows


def chosen_rows(request: Request, found: Catalogue, designs: Collection[Manifest]) -> Rows:
    """Choose the rows of each design, from those that it has promised.

    Raises:
        UsageProblem: The request or a design names something that does not exist.
    """
    chosen = selection.chosen_rows(request, found, designs)
    applications = [design for design in designs if design.application]
    if request.file or request.depth_asked == "full" or not applications:
        return chosen
    deep = replace(request, depth="full", share=None)
    offered = selection.chosen_rows(deep, found, applications)
    for design in applications:
        chosen[design.name].update(_stand_ins(found, design, chosen, offered))
    return chosen


def _stand_ins(found: Catalogue, design: Manifest, chosen: Rows, offered: Rows) -> Iterator[str]:
    """Go through the ids of the rows that stand in at a depth.

    Args:
        found: The catalogue.
        design: An application.
        chosen: The rows of the depth.
        offered: The rows of depth `full`.
    """
    known = durations.load()

    def price(row: Row) -> tuple[bool, float]:
        return not families(row), known.seconds(design.name, row.id)

    judged = defaultdict[str, list[Row]](list)
    for scenario in found.scenarios:
        judged[scenario.guarantee] += (
            row
            for row in scenario.rows
            if row.id in offered[design.name] and _is_judged(row, design)
        )
    for rows in judged.values():
        if rows and not any(row.id in chosen[design.name] for row in rows):
            yield min(rows, key=price).id


def _is_judged(row: Row, design: Manifest) -> bool:
    """Return whether nothing is known for which a row is unsupported."""
    return not any(any(ruled_out(row, release)) for release in design.releases)
