"""Text of others as data: its control characters are visible, its secrets masked.

A design, a user's file, a broker or an engine may say anything. Each text of theirs that enters a
sentence, a card, a picture or a report passes `visible`. So it cannot move a cursor, end a line,
turn the direction of writing or hide. Letters of any language stay as they are.
"""

import unicodedata
from textwrap import TextWrapper
from typing import Final

from upheld.masking import KNOWN

MOST_CHARS: Final = 2000  # of one text
_NOTE: Final = " … ({} characters are left out) … "
_NOTE_CHARS: Final = len(_NOTE) + 10
_READ_CHARS: Final = 1 << 15  # of one text: the middle of a longer one is not looked at
# Fields of reports by which their rows are found; their texts are the harness's own.
IDENTITIES: Final = frozenset({"kind", "design", "id", "guarantee", "verdict", "code"})
_SPACES: Final = "Zs"  # the category of spaces, which have a width in every language
_MARKS: Final = ("Mn", "Me")  # drawn over the letter before
_MOST_MARKS: Final = 4  # over one letter; more reach into other lines
# Letters, symbols and marks by their category, and yet nothing is to be seen of them.
_UNSEEN: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {
    chr(code) for code in (*range(0xFE00, 0xFE0E), *range(0xE0100, 0xE01F0))
}


def visible(text: str, most: int = MOST_CHARS) -> str:
    """Return a text as it may stand within a line.

    Each control, format or lone surrogate character is written as in Python, such as `\\x1b`, `\\n`
    or `\\u202e`. A text that is too long is cut in its middle, with a note. A second call changes
    nothing.

    Args:
        text: The text of a design, a file, a broker or an engine.
        most: The most characters of the result.
    """
    text = KNOWN.masked(text)
    unread = max(0, len(text) - _READ_CHARS)
    if unread:
        text = text[: _READ_CHARS // 2] + text[-_READ_CHARS // 2 :]
    text = escaped(text)
    if len(text) + unread <= most:
        return text
    kept = most - _NOTE_CHARS
    end = kept // 4  # it often names the cause
    return text[: kept - end] + _NOTE.format(len(text) + unread - kept) + text[len(text) - end :]


def printable(text: str) -> str:
    """Return a text of several lines, with all other control characters visible."""
    return "\n".join(map(escaped, KNOWN.masked(text).split("\n")))


def lines_of(text: str) -> str:
    """Return a sentence that may have several lines, each of them visible and bounded."""
    return "\n".join(map(visible, text.split("\n")))


def sentence(text: str) -> str:
    """Return a text with a full stop, unless it ends as a sentence or a question."""
    return text if text.endswith((".", "?")) else f"{text}."


def wrapped(text: str, width: int | None, *, indent: int) -> str:
    """Return a line as lines of a terminal, between words alone.

    Args:
        text: The line.
        width: The columns of the terminal; without it the line stays as it is.
        indent: The columns by which each line but the first is indented.
    """
    if width is None:
        return text
    wrapper = TextWrapper(
        max(width, 2 * indent),
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return wrapper.fill(text)


def visible_data(value: object) -> object:
    """Return data of JSON with each text in it visible, and all else as it is.

    The names by which rows are told apart stay, also if a secret is the same word.
    """
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {
            name: escaped(inner)
            if name in IDENTITIES and isinstance(inner, str)
            else visible_data(inner)
            for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [visible_data(inner) for inner in value]
    return value


def encodable(value: object) -> object:
    """Return a value; if it is a text, return it as it can be written as UTF-8.

    The name of a file may hold any bytes.
    """
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value


def escaped(text: str) -> str:
    """Return a text with its control characters visible, and no secret masked."""
    if text.isascii() and text.isprintable():
        return text
    parts = list[str]()
    marks = 0
    for char in text:
        category = unicodedata.category(char)
        marks = marks + 1 if category in _MARKS else 0
        is_seen = char.isprintable() or category == _SPACES
        if is_seen and char not in _UNSEEN and marks <= _MOST_MARKS:
            parts.append(char)
        else:
            parts.append(char.encode("unicode_escape", "surrogatepass").decode())
    return "".join(parts)
