"""The README's table has a place for every row that is promised, also before anybody has judged them."""

import re
from collections import Counter

import pytest
from readme import DESIGNS, README, TABLE, between, cells_in

from streamgate import catalogue
from streamgate.designs.manifest import load


@pytest.mark.parametrize("design", DESIGNS)
def test_it_counts_what_is_promised(design: str) -> None:
    """A row that came or went is seen here, and not minutes later in a run of everything."""
    cells = cells_in(between(README.read_text(encoding="utf-8"), TABLE))
    counts = Counter(row.id.partition(".")[0] for row in catalogue.load().promised(load(design)))

    assert {g: {int(n) for n in re.findall(r"/(\d+)", cells.get((g, design), ""))} for g in counts} == {
        guarantee: {count} for guarantee, count in counts.items()
    }
