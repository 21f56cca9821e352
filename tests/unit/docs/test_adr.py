"""Each decision in docs/adr has its form, and the index lists all of them."""

import re
from datetime import date
from pathlib import Path

import adr_index
import pytest

from upheld.spec import catalogue

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "docs" / "adr"
TITLE_MAX = 72
WIDTH_MAX = 100
CODE = re.compile(r"`[^`]+`")
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
STATUS = re.compile(r"accepted|superseded by (?P<number>\d{4})")
SECTION = re.compile(r"^## (.+)\n\n(.+)", re.MULTILINE)
FORM = """\
# Keep a thing

- Status: accepted
- Date: 2026-11-26
- Family: tooling
- Affects: G22, `bootstrap.py`

## Context

It is there.
"""


DECISIONS = adr_index.decisions()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with two decisions and their index."""
    for name in ("0001-keep-a-thing.md", "0002-keep-another.md"):
        (tmp_path / name).write_text(FORM, encoding="utf-8")
    index = adr_index.index_of(adr_index.decisions(tmp_path))
    (tmp_path / "README.md").write_text(index, encoding="utf-8")
    return tmp_path


def text_of(name: str) -> str:
    """Return the text of a decision."""
    return (FOLDER / name).read_text(encoding="utf-8")


def test_the_index_is_up_to_date() -> None:
    """`python tools/adr_index.py` would change nothing."""
    assert list(adr_index.out_of_date()) == []


def test_an_index_that_is_missing_is_named(folder: Path) -> None:
    """So that a reader of the log knows which file to write."""
    (folder / "README.md").unlink()

    assert list(adr_index.out_of_date(folder)) == [f"{folder / 'README.md'} is missing"]


def test_a_decision_that_the_index_lacks_or_has_in_excess_is_named(folder: Path) -> None:
    """A new file, a removed one and a changed title are all seen."""
    assert list(adr_index.out_of_date(folder)) == []

    (folder / "0001-keep-a-thing.md").unlink()
    changed = FORM.replace("Keep a thing", "Keep nothing")
    (folder / "0002-keep-another.md").write_text(changed, encoding="utf-8")
    (folder / "0003-keep-more.md").write_text(FORM, encoding="utf-8")

    assert list(adr_index.out_of_date(folder)) == [
        f"{folder / 'README.md'} is out of date",
        "0002-keep-another.md has another line in it",
        "0003-keep-more.md is not in it",
        "0001-keep-a-thing.md is in it and does not exist",
    ]


def test_a_check_exits_with_1_and_names_the_file(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A plain call mends what the check has found."""
    (folder / "README.md").write_text("old", encoding="utf-8")

    assert adr_index.main(["--check"], folder) == 1
    assert f"{folder / 'README.md'} is out of date" in capsys.readouterr().out
    assert adr_index.main([], folder) == 0
    assert adr_index.main(["--check"], folder) == 0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("1-short.md", FORM),
        ("0001-Capital.md", FORM),
        ("0001-no-title.md", FORM.replace("# Keep", "Keep")),
        ("0001-no-status.md", FORM.replace("- Status: accepted\n", "")),
        ("0001-no-family.md", FORM.replace("tooling", "habits")),
    ],
)
def test_another_form_is_refused_with_the_name_of_its_file(
    tmp_path: Path,
    name: str,
    text: str,
) -> None:
    """The index lists nothing that it cannot read."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")

    with pytest.raises(ValueError, match=re.escape(name)):
        adr_index.read(path)


def test_numbers_are_consecutive_and_unique() -> None:
    """A number is an address: none is missing, and none has two files."""
    assert [each.number for each in DECISIONS] == list(range(1, len(DECISIONS) + 1))


def test_titles_are_short_and_unique() -> None:
    """A title fits a line of the index and of a commit."""
    titles = [each.title for each in DECISIONS]

    assert [title for title in titles if len(title) > TITLE_MAX] == []
    assert sorted(titles) == sorted(set(titles))


def test_metadata_are_valid() -> None:
    """Status and date are valid, and the catalogue has each guarantee that is named.

    All other names are in backticks.
    """
    guarantees = catalogue.load().guarantees
    numbers = {each.number for each in DECISIONS}
    for each in DECISIONS:
        status = STATUS.fullmatch(each.status)
        assert status, each.name
        assert status["number"] is None or int(status["number"]) in numbers, each.name
        assert date.fromisoformat(each.date).isoformat() == each.date, each.name
        named = [name for name in each.affects if not CODE.fullmatch(name)]
        assert set(named) <= guarantees.keys(), each.name


def test_every_decision_has_all_sections() -> None:
    """In one order, each with a text."""
    for each in DECISIONS:
        found = SECTION.findall(text_of(each.name))
        assert tuple(title for title, _ in found) == adr_index.SECTIONS, each.name
        assert [text for _, text in found if text.startswith("#")] == [], each.name


def test_no_line_is_wider_than_100_columns() -> None:
    """A table and a line with a link may be."""
    wide = [
        f"{path.name}: {line}"
        for path in FOLDER.glob("*.md")
        for line in path.read_text(encoding="utf-8").splitlines()
        if len(line) > WIDTH_MAX and not line.startswith("|") and not LINK.search(line)
    ]

    assert wide == []


def test_every_link_leads_to_a_file() -> None:
    """Between decisions, and to and from the notebooks."""
    notebooks = (ROOT / "docs" / "notebooks").glob("*.md")
    broken = [
        f"{path.name}: {link}"
        for path in (*FOLDER.glob("*.md"), *notebooks)
        for link in LINK.findall(path.read_text(encoding="utf-8"))
        if not (path.parent / link).is_file()
    ]

    assert broken == []
