"""Documents are read as Markdown, and compared with printed text."""

import pytest
from documents import Fence, Line, anchors, calls, fences, is_shown, lines_of, links, spans

PAGE = """# A page, and `its` heading

Call `upheld list` or see [the other](other.md#there).

    upheld lint

1. In a list:

   <!-- shows -->
   ```text
   first
   ```
"""


def test_a_block_has_its_language_and_its_note() -> None:
    """It may stand in a list, and a block by indent has no language."""
    assert list(fences(PAGE)) == [Fence("", "", "upheld lint"), Fence("text", "shows", "first")]


def test_sentences_have_code_and_links() -> None:
    """A heading has an anchor as GitHub makes it."""
    assert list(spans(PAGE)) == ["its", "upheld list"]
    assert list(links(PAGE)) == ["other.md#there"]
    assert anchors(PAGE) == {"a-page-and-its-heading"}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("upheld run --only '@G1 or @G2'   # a comment", [["run", "--only", "@G1 or @G2"]]),
        ("python3 bootstrap.py run --design plain", [["run", "--design", "plain"]]),
        ("python3 bootstrap.py tox run -m quick", []),
        ("tox run -e gate -- mine", [["run", "mine"]]),
        ("upheld list > rows && upheld lint", [["list"], ["lint"]]),
        ("sed -i s/a/b/ upheld", []),
    ],
)
def test_calls_of_upheld_are_found(line: str, found: list[list[str]]) -> None:
    """Those of other programs are not."""
    assert [call for call in calls(line) if call != ["rows"]] == found


def test_a_line_says_its_exit_code() -> None:
    """A line that is continued is one line, and a comment is none."""
    block = Fence("sh", "", "# first\nupheld run \\\n  --json   # ends with exit code 1\nls")

    assert list(lines_of(block)) == [
        Line("upheld run --json   # ends with exit code 1", 1),
        Line("ls", 0),
    ]


@pytest.mark.parametrize(
    ("shown", "is_it"),
    [
        ("one 1\ntwo 2\nthree 3", True),
        ("one …\n…\nthree 3", True),
        ("…", True),
        ("…\none 1\n…", True),
        ("one 1", False),
        ("one 1\n…\nfour", False),
        ("two …\n…", False),
    ],
)
def test_an_ellipsis_stands_for_text(shown: str, is_it: bool) -> None:
    """All else has to be printed as it is shown."""
    assert is_shown(shown, "one 1\ntwo 2\nthree 3\n") is is_it
