"""Each twin names its rows, and the one line in which its wrong design differs."""

import ast
import subprocess
from difflib import unified_diff
from pathlib import Path

import pytest
from twins import FILES, make_wrong_design

from upheld import commands
from upheld.errors import UsageProblem
from upheld.protocol.manifest import Manifest, Twin, load
from upheld.spec import catalogue
from upheld.spec.selection import Request, chosen_rows, rows_of_the_twin

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
def test_names_its_rows(name: str) -> None:
    """A twin is judged on its rows alone, at every depth."""
    design, _ = twin_of(name)
    rows = rows_of_the_twin(FOUND, design)

    assert design.name == name
    assert rows
    assert chosen_rows(Request(), FOUND, [design]) == {name: rows}


@pytest.mark.parametrize("name", TWINS)
def test_its_wrong_design_differs_in_one_line(name: str, tmp_path: Path) -> None:
    """The right line stands once in its files; the wrong one is another, or none."""
    _, twin = twin_of(name)
    make_wrong_design(DESIGNS / name, twin.line, tmp_path / name)

    differences = [
        line
        for file in FILES
        for line in unified_diff(
            (DESIGNS / name / file).read_text().splitlines(),
            (tmp_path / name / file).read_text().splitlines(),
            n=0,
            lineterm="",
        )
        if not line.startswith(("---", "+++", "@@"))
    ]

    right, *wrong = [each[0] + each[1:].strip() for each in differences]
    assert right == f"-{twin.line.right}"
    assert wrong == [f"+{twin.line.wrong}" for _ in range(bool(twin.line.wrong))]


def test_no_wrong_design_is_wrong_by_an_unknown_name(tmp_path: Path) -> None:
    """It is caught for what its line does, and not because that raises a NameError."""
    for name in TWINS:
        make_wrong_design(DESIGNS / name, twin_of(name)[1].line, tmp_path / name)

    ruff = commands.own_module("ruff", "check", "--isolated", "--select", "F82", str(tmp_path))
    linted = subprocess.run(ruff, capture_output=True, text=True, check=False)

    assert linted.returncode == 0, linted.stdout


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
