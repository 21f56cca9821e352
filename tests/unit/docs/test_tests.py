"""The tests mirror the packages, and no test needs another one."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
TESTS = ROOT / "tests"
KINDS = ("unit", "live", "mutants", "twins", "examples", "browser")
# Of tests/unit: what is tested there is no package.
BESIDE_PACKAGES = {"docs", "tools", "support"}
SCRIPT = re.compile(r"\bpython3? ([\w./]+\.py)")


def modules(folder: Path) -> list[Path]:
    """Return the Python files of a folder and of all below it."""
    return sorted(folder.rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """Return the last part of each module that a file imports, also inside a function."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.rpartition(".")[2] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").rpartition(".")[2]
            yield from (alias.name for alias in node.names)


def scripts_of(file: str) -> set[str]:
    """Return the scripts that a file of commands runs."""
    return set(SCRIPT.findall((ROOT / file).read_text(encoding="utf-8")))


def test_no_test_imports_another_test() -> None:
    """Code that two tests share stands in tests/support."""
    tests = {path.stem for kind in KINDS for path in modules(TESTS / kind)}
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in modules(TESTS)
        for name in imported(path)
        if name in tests and name.startswith("test_")
    ]

    assert tests
    assert found == []


def test_every_test_stands_with_its_kind() -> None:
    """Tests are unit, live, of designs of a kind, or in a browser; support holds none."""
    designs = TESTS / "twins/designs"
    files = {path.relative_to(TESTS) for path in modules(TESTS) if designs not in path.parents}
    strays = {
        str(path) for path in files if (path.parts[0] in KINDS) != path.name.startswith("test_")
    }

    assert {path.parts[0] for path in files} == {*KINDS, "support"}
    assert strays == set()


def test_the_folders_of_the_unit_tests_are_packages() -> None:
    """A folder has the name of a package of `upheld`, or tests what is no package."""
    folders = {path.name for path in (TESTS / "unit").iterdir() if list(path.glob("*.py"))}
    packages = {path.stem for path in (ROOT / "upheld").iterdir()}

    assert folders - BESIDE_PACKAGES - packages == set()
    assert folders >= BESIDE_PACKAGES


def test_scripts_that_tox_runs_are_no_tests() -> None:
    """They stand in tools or bench; bootstrap.py alone stands above."""
    scripts = scripts_of("tox.ini") | scripts_of(".ci/run")

    assert {script.partition("/")[0] for script in scripts} == {"bootstrap.py", "tools", "bench"}
    assert [script for script in scripts if not (ROOT / script).is_file()] == []
