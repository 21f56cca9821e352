"""What the project says of itself agrees: metadata, citation, changelog, and how the documents install it."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from trove_classifiers import classifiers

import upheld

ROOT = Path(__file__).parents[1]
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "docs/gate-your-own-design.md", "docs/releasing.md")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
INSTALLS = re.compile(r"\bpip install (?P<what>[^\s`#]+)(?P<rest>.*)")
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+?)(?:\[(?P<extras>[\w,-]+)\])?(?:[=<>~!].*)?")
RELEASED = re.compile(r"^## (?P<version>\S+) \(\d{4}-\d\d-\d\d\)$", re.MULTILINE)
FROM_HERE = "from the repository"


def wrong_installs(text: str, *, is_published: bool) -> list[str]:
    """Return each line that installs what is not published, or an extra that there is not."""
    wrong = []
    for line in INSTALLS.finditer(text):
        what = line["what"].strip("\"'")
        if what.startswith((".", "/")):
            if FROM_HERE not in line["rest"]:
                wrong.append(f"{line.group()}: does not say “{FROM_HERE}”")
            continue
        named = REQUIREMENT.fullmatch(what)
        if not named or named["name"] != PROJECT["name"]:
            continue  # another project's package
        if not is_published:
            wrong.append(f"{line.group()}: nothing is published")
        unknown = set(filter(None, (named["extras"] or "").split(","))) - PROJECT["optional-dependencies"].keys()
        if unknown:
            wrong.append(f"{line.group()}: there is no extra {', '.join(sorted(unknown))}")
    return wrong


def is_published() -> bool:
    """Return whether the changelog has a version with the date of its release."""
    return RELEASED.search((ROOT / "CHANGELOG.md").read_text(encoding="utf-8")) is not None


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_line_that_installs_can_be_typed(document: str) -> None:
    """It names what is published, or says that it installs from the repository."""
    text = (ROOT / document).read_text(encoding="utf-8")

    assert wrong_installs(text, is_published=is_published()) == []


def test_the_guide_installs_something() -> None:
    """The comparison has lines to compare."""
    assert len(INSTALLS.findall((ROOT / "docs/gate-your-own-design.md").read_text(encoding="utf-8"))) >= 3


@pytest.mark.parametrize(
    ("line", "is_published", "said"),
    [
        ("pip install upheld", True, []),
        ("pip install upheld[spark]==0.1", True, []),
        ("pip install ./upheld  # from the repository", False, []),
        ("pip install pyspark", False, []),
        ("pip install upheld", False, ["nothing is published"]),
        ("pip install upheld[sparks]", True, ["there is no extra sparks"]),
        ("pip install ./upheld", False, ["does not say “from the repository”"]),
    ],
)
def test_a_wrong_line_is_told(line: str, is_published: bool, said: list[str]) -> None:
    """Each kind of wrong line is found, and right ones are left alone."""
    found = wrong_installs(line, is_published=is_published)

    assert [each.rpartition(": ")[2] for each in found] == said


def test_the_classifiers_exist() -> None:
    """An index refuses a package with a classifier that it does not know."""
    assert set(PROJECT["classifiers"]) <= classifiers
    assert PROJECT["keywords"] == sorted(PROJECT["keywords"])


def test_the_citation_is_of_this_version() -> None:
    """Version, licence and authors are those of the package."""
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    (author,) = PROJECT["authors"]

    assert f"\nversion: {upheld.__version__}\n" in citation
    assert f"\nlicense: {PROJECT['license']}\n" in citation
    assert f"- name: {author['name']}\n" in citation


def test_the_changelog_begins_with_this_version() -> None:
    """The first heading is the version of the package, with or without the date of its release."""
    heading = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)

    assert heading
    assert heading[1] == upheld.__version__
