"""The sources of the site, its navigation, and the look at what was made of them."""

from pathlib import Path

import guarantees
import pytest
import website
from pages import DOCS

ROOT = DOCS.parent
SAID = website.settings()
NAMES = website.sources(SAID)
PAGES = [*NAMES.values(), "guarantees/index.md"] + [
    f"guarantees/{each.id}.md" for members in guarantees.by_family().values() for each in members
]


def relinked(text: str, page: str = "docs/protocol.md") -> str:
    """Return a text of this page as the site has it."""
    return website.relinked(text, ROOT / page, NAMES)


@pytest.mark.parametrize(
    ("page", "text", "expected"),
    [
        ("docs/protocol.md", "[a](sweep.md#b)", "[a](sweep.md#b)"),
        ("docs/protocol.md", "[a](#b)", "[a](#b)"),
        ("docs/protocol.md", "[a](https://example.org)", "[a](https://example.org)"),
        ("docs/protocol.md", "[`a/`](../examples/README.md)", "[`a/`](examples.md)"),
        ("docs/protocol.md", "[a](../tox.ini) b", "a b"),
        ("docs/adr/README.md", "[a](../protocol.md)", "[a](../protocol.md)"),
        ("docs/adr/README.md", "[a](../../README.md)", "[a](../readme.md)"),
        ("README.md", "[a](docs/adr/README.md)", "[a](adr/README.md)"),
        ("README.md", "[a](LICENSE)", "a"),
        ("README.md", "![a](docs/images/page.png)", "![a](images/page.png)"),
        ("docs/protocol.md", "```\n[a](../tox.ini)\n```", "```\n[a](../tox.ini)\n```"),
    ],
)
def test_a_link_leads_to_a_page_of_the_site(page: str, text: str, expected: str) -> None:
    """A link to a file that is no page becomes its text; code is left as it is."""
    assert relinked(text, page) == expected


def test_the_table_of_verdicts_leads_to_the_pages_of_guarantees(tmp_path: Path) -> None:
    """The kept page has no such links, because the pages of guarantees are not kept."""
    website.stage(tmp_path, SAID)

    assert "\n| [G22](guarantees/G22.md) | " in (tmp_path / "verdicts.md").read_text()
    assert (tmp_path / "guarantees" / "G22.md").exists()


def test_every_page_is_in_a_chapter() -> None:
    """The navigation has all that is there, with the guarantees by family."""
    chapters = website.navigation(SAID, PAGES)

    assert [name for chapter in chapters for name in chapter] == [
        chapter["name"] for chapter in SAID["chapters"]
    ]
    families = next(chapter["Guarantees"] for chapter in chapters if "Guarantees" in chapter)
    assert len(families) == 1 + len(guarantees.by_family())


def test_a_page_in_no_chapter_stands_in_the_last_one() -> None:
    """A new page would be found by nobody."""
    *_, last = website.navigation(SAID, [*PAGES, "new.md"])

    assert [pages[-1] for pages in last.values()] == ["new.md"]


def test_a_chapter_without_its_page_is_named() -> None:
    """An empty chapter would lead nowhere."""
    with pytest.raises(website.Problem, match=r"site\.toml names sweep\.md"):
        website.navigation(SAID, [page for page in PAGES if page != "sweep.md"])


def site(folder: Path, body: str) -> Path:
    """Write a site of two pages; the first has this body."""
    (folder / "sub").mkdir()
    (folder / "a.js").write_text("")
    (folder / "index.html").write_text(f"<html><body>{body}</body></html>")
    (folder / "sub" / "index.html").write_text('<a href="..">up</a><h1 id="here">a</h1>')
    return folder


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('<a href="sub/index.html#here">', []),
        ('<a href="sub/#here"><a href="https://example.org">', []),
        ('<script src="a.js">', []),
        ('<a href="sub/index.html#no">', ["links to sub/index.html#no, which does not exist"]),
        ('<a href="gone.html">', ["links to gone.html, which does not exist"]),
        ('<a href="#gone">', ["links to #gone, which does not exist"]),
        ('<script src="gone.js">', ["loads gone.js, which does not exist"]),
        ('<script src="https://example.org/a.js">', ["loads https://example.org/a.js"]),
        ('<link rel="preconnect" href="//example.org">', ["loads //example.org"]),
        ('<img src="http://example.org/a.png">', ["loads http://example.org/a.png"]),
    ],
)
def test_what_is_wrong_with_a_site_is_found(tmp_path: Path, body: str, expected: list[str]) -> None:
    """Links that lead nowhere, and all that a page would load from a host."""
    found = list(website.faults(site(tmp_path, body)))

    assert found == [f"index.html {said}" for said in expected]


def test_a_font_of_a_host_is_found(tmp_path: Path) -> None:
    """Style sheets load files too."""
    folder = site(tmp_path, "")
    (folder / "a.css").write_text("@font-face { src: url(https://example.org/a.woff2) }")

    assert list(website.faults(folder)) == ["a.css loads https://example.org/a.woff2"]
