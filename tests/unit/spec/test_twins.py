"""Each twin names rows, and the wrong design that is caught where it is not."""

import ast
from pathlib import Path

import pytest

from upheld.errors import UsageProblem
from upheld.protocol.manifest import Manifest, Twin, load
from upheld.spec import catalogue
from upheld.spec.selection import Request, chosen_rows, rows_of_the_mutant, rows_of_the_twin

DESIGNS = Path(__file__).parents[2] / "twins/designs"
TWINS = sorted(folder.name for folder in DESIGNS.iterdir())
LINES_MAX = 40
FOUND = catalogue.load()


def twin_of(name: str) -> tuple[Manifest, Twin]:
    """Return a twin's manifest, and its table `[twin]`."""
    design = load(str(DESIGNS / name))
    assert design.twin
    return design, design.twin


@pytest.mark.parametrize("name", TWINS)
def test_names_its_rows_and_its_wrong_design(name: str) -> None:
    """A twin is judged on its rows alone, at every depth.

    A row of the same scenario catches the wrong design.
    """
    design, twin = twin_of(name)
    wrong = load(twin.wrong)
    rows = rows_of_the_twin(FOUND, design)
    scenarios = {FOUND.by_row[row].id for row in rows}
    caught = {FOUND.by_row[row].id for row in rows_of_the_mutant(FOUND, wrong)}

    assert design.name == name
    assert rows
    assert chosen_rows(Request(), FOUND, [design]) == {name: rows}
    assert wrong.sin
    assert scenarios & caught


@pytest.mark.parametrize("name", TWINS)
def test_one_short_module(name: str) -> None:
    """A twin is one module of at most 40 lines, and its docstring says what it does."""
    text = (DESIGNS / name / "__main__.py").read_text()

    assert [path.name for path in (DESIGNS / name).glob("**/*.py")] == ["__main__.py"]
    assert len(text.splitlines()) <= LINES_MAX
    assert ast.get_docstring(ast.parse(text))


def test_a_twin_of_no_row() -> None:
    """A row that does not exist is refused before a broker is started."""
    design, twin = twin_of(TWINS[0])
    lost = design.model_copy(update={"twin": twin.model_copy(update={"rows": ("G42.lost",)})})

    with pytest.raises(UsageProblem, match=r"\[twin\] names G42.lost, and there is no such"):
        chosen_rows(Request(), FOUND, [lost])
