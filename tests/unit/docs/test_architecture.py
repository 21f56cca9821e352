"""The picture of the packages is the contract that the lint holds.

The places that it names exist.
"""

import re
from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ARROW = re.compile(r"^ +(?P<above>[\w& ]+) --> (?P<below>[\w& ]+)$", re.MULTILINE)
PLACE = re.compile(r"`((?:upheld|features|steps|generators|impl|tools)/[\w./]*)`")
OUTSIDE = {"impl", "adapter", "bridge"}  # designs, what they copy, and what stands for one


def layers() -> list[set[str]]:
    """Return the packages of each layer, from the top."""
    contract = ConfigParser()
    contract.read(ROOT / ".importlinter")
    lines = contract["importlinter:contract:layers"]["layers"].split("\n")
    return [{name.strip() for name in line.split("|")} for line in lines if line.strip()]


def test_the_picture_shows_the_layers() -> None:
    """Each arrow leads from one layer to the next, and no layer is left out."""
    drawn = [
        ({*each["above"].split(" & ")}, {*each["below"].split(" & ")})
        for each in ARROW.finditer(PAGE)
    ]

    assert drawn == list(zip(layers()[:-1], layers()[1:], strict=True))


def test_each_module_of_the_top_has_a_layer() -> None:
    """A package or module that stands in no layer stands outside by name."""
    found = {
        path.stem
        for path in (ROOT / "upheld").iterdir()
        if (path / "__init__.py").exists() or path.suffix == ".py"
    }

    assert {name for name in found if not name.startswith("__")} - OUTSIDE - {
        "data"
    } == set().union(*layers())


def test_the_places_that_it_names_exist() -> None:
    """A reader who follows a path finds it."""
    named = set(PLACE.findall(PAGE))

    assert len(named) > 30
    assert {place for place in named if not (ROOT / place).exists()} == set()
