"""Hold the constraints files: each package is pinned, and no index is named."""

import re
import tomllib
from pathlib import Path

import constraints
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
FILES = ("constraints.txt", *(f"constraints-{extra}.txt" for extra in constraints.EXTRAS))
PIN = re.compile(r"[a-z0-9._-]+==[\w.!+]+( ; .+)?")
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def pinned(*names: str) -> dict[str, list[str]]:
    """Return the versions of each package in these files."""
    found: dict[str, list[str]] = {}
    for name in names:
        for line in constraints.blocks((ROOT / name).read_text()):
            requirement = Requirement(line)
            version = str(requirement.specifier).removeprefix("==")
            found.setdefault(canonicalize_name(requirement.name), []).append(version)
    return found


@pytest.mark.parametrize("name", FILES)
def test_each_line_is_a_pin_or_a_hash(name: str) -> None:
    """No line names an index, a host or an option: each machine keeps its own."""
    lines = [line for line in (ROOT / name).read_text().splitlines() if line[0] != "#"]

    assert [
        line
        for line in lines
        if not HASH.fullmatch(line) and not PIN.fullmatch(line.removesuffix(" \\"))
    ] == []
    assert "://" not in (ROOT / name).read_text()


@pytest.mark.parametrize("name", FILES)
def test_each_package_has_a_hash(name: str) -> None:
    """One without a hash would be any file that an index likes to serve."""
    found = constraints.blocks((ROOT / name).read_text())

    assert found
    assert [line for line, block in found.items() if len(block) < 2] == []


@pytest.mark.parametrize(
    ("wanted", "files"),
    [
        (PROJECT["build-system"]["requires"], FILES[:1]),
        (PROJECT["project"]["dependencies"], FILES[:1]),
        *(
            (PROJECT["project"]["optional-dependencies"][extra], (FILES[0], file))
            for extra, file in zip(constraints.EXTRAS, FILES[1:], strict=True)
        ),
    ],
)
def test_the_files_hold_what_the_project_asks_for(
    wanted: list[str], files: tuple[str, ...]
) -> None:
    """A dependency that is added or raised has to be pinned again."""
    found = pinned(*files)

    assert [
        each
        for each in map(Requirement, wanted)
        if not all(
            each.specifier.contains(version)
            for version in found.get(canonicalize_name(each.name), ["0"])
        )
    ] == []


def test_the_lines_of_a_file_are_told_apart() -> None:
    """A requirement has its hashes with it, and a comment belongs to none."""
    text = (
        "# made\na==1 ; python_version < '4' \\\n    --hash=sha256:00\n# b\nb==2 \\\n    --hash=x\n"
    )

    assert constraints.blocks(text) == {
        "a==1 ; python_version < '4'": ["a==1 ; python_version < '4' \\", "    --hash=sha256:00"],
        "b==2": ["b==2 \\", "    --hash=x"],
    }
