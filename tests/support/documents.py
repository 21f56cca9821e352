"""The documents as data: their blocks of code, their commands and their links."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
GAP: Final = "…"  # what stands for it in a printed text is left out
PLACES: Final = ("*.md", "examples/*.md", "docs/**/*.md")
DOCUMENTS: Final = sorted(path for place in PLACES for path in ROOT.glob(place))
OTHER_PROGRAMS: Final = {"tox", "install"}  # of which bootstrap.py is the front

_NOTE = re.compile(r"<!-- (.*) -->\n?")
_RUN = re.compile(r"^\s*(?:- )?(?:run: )?(?P<line>(?:upheld|python3 bootstrap\.py|tox run) .*)$")
_EXPRESSION = re.compile(r"\$\{\{[^}]*\}\}")  # of GitHub Actions
_EXIT = re.compile(r"# .*\bexit code (\d+)")
_SEPARATES = re.compile(r"[|&;<>()]+")
_BOOTSTRAP: Final = ["python3", "bootstrap.py"]
_GATE: Final = ["tox", "run", "-e", "gate", "--"]


class Fence(NamedTuple):
    """A block of code.

    Attributes:
        language: The word behind its first three backticks.
        note: The comment on the line before it.
        text: Its lines.
    """

    language: str
    note: str
    text: str


class Line(NamedTuple):
    """A line of a shell.

    Attributes:
        text: The line.
        exit_code: The exit code that its comment names; 0 if it names none.
    """

    text: str
    exit_code: int


def named(document: Path) -> str:
    """Return the path of a document in the repository."""
    return document.relative_to(ROOT).as_posix()


@cache
def _tokens(text: str) -> tuple[Token, ...]:
    return tuple(MarkdownIt("commonmark").enable("table").parse(text))


def _inner(text: str) -> Iterator[Token]:
    return (inner for token in _tokens(text) for inner in token.children or ())


def fences(text: str) -> Iterator[Fence]:
    """Go through the blocks of code in a document's text."""
    note = ""
    for token in _tokens(text):
        if token.type in {"fence", "code_block"}:
            yield Fence(token.info.strip(), note, token.content.rstrip("\n"))
        found = _NOTE.fullmatch(token.content) if token.type == "html_block" else None
        note = found[1] if found else ""


def spans(text: str) -> Iterator[str]:
    """Go through the code inside of the sentences, each on one line."""
    return (
        " ".join(token.content.split()) for token in _inner(text) if token.type == "code_inline"
    )


def links(text: str) -> Iterator[str]:
    """Go through the targets of the links and pictures in a document's text."""
    for token in _inner(text):
        target = token.attrGet("src" if token.type == "image" else "href")
        if target:
            yield str(target)


def anchors(text: str) -> set[str]:
    """Return the anchors of a document's headings, as GitHub makes them."""
    tokens = _tokens(text)
    headings = (after.content for token, after in pairwise(tokens) if token.type == "heading_open")
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


def lines_of(fence: Fence) -> Iterator[Line]:
    """Go through the lines of a block for a shell; one that is continued is one."""
    for text in re.sub(r" *\\\n *", " ", fence.text).splitlines():
        if text.strip() and not text.lstrip().startswith("#"):
            exits = _EXIT.search(text)
            yield Line(text, int(exits[1]) if exits else 0)


def written_commands(fence: Fence) -> Iterator[list[str]]:
    """Go through the arguments of each call of upheld in a block of code."""
    for line in lines_of(fence):
        text = line.text
        if fence.language == "yaml":
            found = _RUN.match(_EXPRESSION.sub("1", text))
            text = found["line"] if found else ""
        yield from calls(text)


def calls(text: str) -> Iterator[list[str]]:
    """Go through the arguments of each call of upheld in a line of a shell."""
    words: list[str] = []
    for word in [*_words(text), ";"]:
        if not _SEPARATES.fullmatch(word):
            words.append(word)
            continue
        yield from _arguments(words)
        words = []


def _words(text: str) -> list[str]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return list(lexer)


def _arguments(words: list[str]) -> Iterator[list[str]]:
    """Yield the arguments of a call of upheld; nothing if another program is called."""
    if words[:1] == ["upheld"]:
        yield words[1:]
    elif words[:2] == _BOOTSTRAP and words[2:3] and words[2] not in OTHER_PROGRAMS:
        yield words[2:]
    elif words[: len(_GATE)] == _GATE:
        yield ["run", *words[len(_GATE) :]]


def is_shown(shown: str, printed: str) -> bool:
    """Return whether a document shows what was printed.

    An ellipsis on a line of its own stands for any lines, and one inside of a line for any text.
    """
    pattern = "".join(
        r"(?:[^\n]*\n)*?"
        if line.strip() == GAP
        else "[^\n]*?".join(re.escape(part) for part in line.rstrip().split(GAP)) + r"[ \t]*\n"
        for line in shown.strip("\n").splitlines()
    )
    return re.fullmatch(pattern, printed.rstrip("\n") + "\n") is not None
