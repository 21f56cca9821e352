"""The documents agree with the metadata of the package.

They are installation commands, CITATION.cff and the changelog.
"""

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from trove_classifiers import classifiers

import upheld

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
CITATION = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
STARTER = sorted((ROOT / "upheld").glob("*/starter/*.*"))
TEXTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")), *STARTER]

INSTALL = re.compile(r"\bpip[\d.]* install\b(?P<arguments>[^`\n]*)")
PATH = re.compile(r"(?P<folder>\.{0,2}/[^\[]*|\.)(?:\[(?P<extras>[^\]]*)\])?")
RELEASE = re.compile(r"^## (?P<version>\S+)(?: - (?P<date>\d{4}-\d\d-\d\d))?$", re.MULTILINE)
MINOR = re.compile(r"Programming Language :: Python :: (3\.\d+)")
ORIGIN = "from the repository"
UNPUBLISHED = "Nothing is published"


class Release(NamedTuple):
    """A heading of the changelog."""

    version: str
    date: str  # empty until the version is on PyPI


class Line(NamedTuple):
    """A line of a text that has an installation command in it."""

    file: str
    text: str
    arguments: str  # what follows `pip install`


def releases(changelog: str = CHANGELOG) -> list[Release]:
    """Return the versions of the changelog, newest first."""
    return [Release(found["version"], found["date"] or "") for found in RELEASE.finditer(changelog)]


def install_lines() -> Iterator[Line]:
    """Yield every line that shows an installation command."""
    for path in TEXTS:
        for text in path.read_text(encoding="utf-8").splitlines():
            for found in INSTALL.finditer(text):
                yield Line(path.name, text, found["arguments"])


def wrong_target(target: str, *, published: bool) -> str:
    """Return what is wrong with a target of pip install; empty if nothing is."""
    if path := PATH.fullmatch(target):
        name = Path(path["folder"]).name or PROJECT["name"]
        extras = {extra.strip() for extra in (path["extras"] or "").split(",")} - {""}
    elif not published:
        return f"{target} is not a path, and nothing is published"
    else:
        try:
            requirement = Requirement(target)
        except InvalidRequirement:
            return f"{target} is no requirement"
        name = requirement.name
        extras = requirement.extras
    if name != PROJECT["name"]:
        return f"the distribution is {PROJECT['name']}, not {name}"
    unknown = sorted(extras - PROJECT["optional-dependencies"].keys())
    return f"there is no extra {unknown[0]}" if unknown else ""


def wrong_line(text: str, arguments: str, *, published: bool) -> list[str]:
    """Return what is wrong with a line that has an installation command in it."""
    try:
        words = shlex.split(arguments, comments=True)
    except ValueError:
        return ["a quotation mark is not closed"]
    targets = [word for word in words if not word.startswith("-")]
    wrong = [wrong_target(target, published=published) for target in targets]
    if not targets:
        wrong.append("nothing is installed")
    if not published and ORIGIN not in text:
        wrong.append(f"the line does not say '{ORIGIN}'")
    return [each for each in wrong if each]


def cited(field: str) -> str:
    """Return a field of CITATION.cff that stands on one line; empty if it is missing."""
    found = re.search(rf"^{field}: (.+)$", CITATION, re.MULTILINE)
    return found[1].strip('"') if found else ""


def test_every_pip_install_line_is_true() -> None:
    """A heading of the changelog without a date says that nothing is published."""
    lines = list(install_lines())
    published = any(release.date for release in releases())
    found = [
        f"{line.file}: {wrong}: {line.text.strip()}"
        for line in lines
        for wrong in wrong_line(line.text, line.arguments, published=published)
    ]

    assert len(lines) >= 3
    assert len(STARTER) >= 2
    assert found == []


@pytest.mark.parametrize(
    ("arguments", "published", "wrong"),
    [
        ("./upheld   # from the repository", False, []),
        ("-e '.[spark,dev]'   # from the repository", False, []),
        ("'./upheld[spark]'   # from the repository", True, []),
        ("'upheld[spark]==0.1.0'", True, []),
        ("./upheld", False, ["the line does not say 'from the repository'"]),
        (
            "upheld   # from the repository",
            False,
            ["upheld is not a path, and nothing is published"],
        ),
        (
            "./streamgate   # from the repository",
            False,
            ["the distribution is upheld, not streamgate"],
        ),
        ("./upheld[flink]   # from the repository", False, ["there is no extra flink"]),
        ("streamgate", True, ["the distribution is upheld, not streamgate"]),
        ("upheld[flink]", True, ["there is no extra flink"]),
        ("upheld=0.1.0", True, ["upheld=0.1.0 is no requirement"]),
        ("-q   # from the repository", False, ["nothing is installed"]),
        ("'./upheld   # from the repository", False, ["a quotation mark is not closed"]),
    ],
)
def test_a_false_pip_install_line_is_found(
    arguments: str,
    published: bool,
    wrong: list[str],
) -> None:
    """A wrong name, an unknown extra, and a download before anything is published."""
    assert wrong_line(f"pip install {arguments}", arguments, published=published) == wrong


def test_a_text_says_that_nothing_is_published_as_long_as_it_is_true() -> None:
    """The sentence goes when the first heading of the changelog gets its date."""
    saying = [path.name for path in TEXTS if UNPUBLISHED in path.read_text(encoding="utf-8")]

    assert bool(saying) != any(release.date for release in releases()), saying


def test_a_dated_heading_is_a_release() -> None:
    """The newest heading of the changelog is this version.

    So a heading in another form is not passed over.
    """
    dated = "# Changelog\n\n## 0.2.0\n\n- More.\n\n## 0.1.0 - 2026-12-01\n\n- A start.\n"

    assert releases(dated) == [Release("0.2.0", ""), Release("0.1.0", "2026-12-01")]
    assert [release.version for release in releases()][:1] == [upheld.__version__]
    assert len(releases()) == CHANGELOG.count("\n## ")


def test_the_citation_agrees_with_the_package() -> None:
    """CITATION.cff names the version, the license, the authors, and the date if any."""
    newest = releases()[0]
    authors = [author["name"] for author in PROJECT["authors"]]

    assert cited("title").lower() == PROJECT["name"]
    assert cited("version") == upheld.__version__
    assert cited("license") == PROJECT["license"]
    assert cited("date-released") == newest.date
    assert re.findall(r"^  - name: (.+)$", CITATION, re.MULTILINE) == authors


def test_the_named_pythons_are_supported() -> None:
    """Each Python of the classifiers is one that `requires-python` allows."""
    named = [found[1] for each in PROJECT["classifiers"] if (found := MINOR.fullmatch(each))]

    assert named
    assert [each for each in named if each not in SpecifierSet(PROJECT["requires-python"])] == []


def test_the_classifiers_exist() -> None:
    """An index refuses a package with a classifier that it does not know."""
    assert set(PROJECT["classifiers"]) <= classifiers
    assert PROJECT["keywords"] == sorted(PROJECT["keywords"])
