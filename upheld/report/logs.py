"""The lines of a log around a moment, and its last ones, in columns.

The columns are time, level and message. Each library has its own order of time, level, thread and
logger. The message stands last, and it is
the part that a reader needs: the other parts are found, shortened or left out.
"""

import os
import re
import stat
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from upheld.text import visible

LINES: Final = 4  # the last ones of each instance
AROUND: Final = 2  # lines before a moment, and as many after it
LEFT_OUT: Final = "…"
COLUMNS: Final = 110  # of a line of the message
MOST_CHARS: Final = 600  # of a message; the middle of a longer one is left out
READ_BYTES: Final = 1 << 15  # of the log's end, in which the last lines are looked for
FAR_BYTES: Final = 1 << 22  # so far before the end a moment is not looked for any more
LINE_CHARS: Final = 1 << 13  # of a line; its end is not looked at
TIME_WIDTH: Final = 12  # such as 10:11:12.345
LEVEL_WIDTH: Final = 5

_SECRET: Final = re.compile(
    r"((?:password|secret|token|credential)[^\s=:]*\s*[=:]\s*)\S+", re.IGNORECASE
)
_HIDDEN: Final = r"\1…"
_TIME: Final = re.compile(
    r"""\W{0,2}(?:time=|ts=)?\W{0,2}
    (?:\d{2,4}[-/.]\d\d[-/.]\d\d[T\ ])?     # a date
    (?P<time>\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)
    (?:Z|\ ?[+-]\d\d:?\d\d\b)?[\]")]?       # a zone, and the end of a bracket
    """,
    re.VERBOSE,
)
_LEVELS: Final = {
    "TRACE": "TRACE",
    "DEBUG": "DEBUG",
    "INFO": "INFO",
    "NOTICE": "INFO",
    "WARN": "WARN",
    "WARNING": "WARN",
    "ERROR": "ERROR",
    "SEVERE": "ERROR",
    "CRITICAL": "FATAL",
    "FATAL": "FATAL",
}
_LEVEL: Final = re.compile(
    rf"[\[(]?(?:level=|lvl=)?\b(?P<level>{'|'.join(_LEVELS)})\b[\])]?", re.IGNORECASE
)
_GAP: Final = re.compile(r"(?:\s|[|:-](?=\s))+")  # between two parts of the head
# A thread, or the number of a process. Kafka's [Consumer clientId=…] belongs to the message.
_BRACKET: Final = re.compile(r"\[[^\[\]=]*\]|\([^()=]*\)")
_LOGGER: Final = re.compile(r"[\w$-]+(?:\.[\w$-]+)*(?=\s+(?:\[[^\[\]]*\]\s+)?--?\s|:\s)")
_BEFORE_LEVEL: Final = re.compile(rf"[\w.$-]+\s+-\s+(?={_LEVEL.pattern})", re.IGNORECASE)
# librdkafka writes %3|1795781803.914|FAIL|rdkafka#producer-1| [thrd:…]: text, the severity first.
_LIBRDKAFKA: Final = re.compile(
    r"%(?P<severity>[0-7])\|(?P<seconds>\d+)\.\d+\|(?P<what>\w+)\|(?P<client>[^|]*)\| "
    r"(?:\[thrd:[^\]]*\]:\s*)?"
)
_SEVERITIES: Final = ("FATAL", "FATAL", "FATAL", "ERROR", "WARN", "INFO", "INFO", "DEBUG")
# The frames of a stack trace say less than the exception above them.
_FRAME: Final = re.compile(r"\s*(?:at\s+\S+\(.*\)|\.\.\. \d+ (?:more|common frames omitted))\s*$")


class LogLine(NamedTuple):
    """One line of a log; a part that was not found is empty."""

    time: str
    level: str
    message: str


def parts_of(line: str) -> LogLine:
    """Return the time, the level and the message of a line.

    A line in no known form is all message.
    """
    text = line.strip()
    if known := _LIBRDKAFKA.match(text):
        message = f"{known['what']} {known['client']}: {text[known.end() :]}"
        return LogLine("", _SEVERITIES[int(known["severity"])], message)
    time = _TIME.match(text)
    rest = text[time.end() :] if time else text
    level, message = _head(rest) if time or _begins_with_level(rest) else ("", rest)
    return LogLine(time["time"].replace(",", ".") if time else "", level, message or rest)


def _begins_with_level(text: str) -> bool:
    """Return whether a line without a time has a level in capitals before anything else."""
    found = _LEVEL.match(text)
    return bool(found and found["level"].isupper())


def _head(text: str) -> tuple[str, str]:
    """Return the level of what follows the time, and the message after both.

    If there is no level, all of it is the message.
    """
    level = ""
    rest = text
    while True:
        rest = rest[gap.end() :] if (gap := _GAP.match(rest)) else rest
        if not level and (found := _LEVEL.match(rest)):
            level = _LEVELS[found["level"].upper()]
        elif not (found := _BRACKET.match(rest) or _BEFORE_LEVEL.match(rest)):
            break
        rest = rest[found.end() :]
    if not level:
        return "", _GAP.sub("", text, count=1) if _GAP.match(text) else text
    if logger := _LOGGER.match(rest):
        short = logger[0].rpartition(".")[2]
        after = rest[logger.end() :].lstrip()
        after = _BRACKET.sub("", after, count=1) if after.startswith("[") else after
        return level, f"{short}: {after.lstrip(' :-')}"
    return level, rest.removeprefix("msg=").lstrip(":")


def last_lines(path: Path, count: int = LINES, at: int | None = None) -> Iterator[str]:
    """Go through lines of a log, in columns and wrapped into several of these.

    There are none if there is no log.

    Args:
        path: The log.
        count: How many of the last lines are shown.
        at: The bytes that the log had at a moment. The lines around it are shown before the last
            ones, unless they are far from the end.
    """
    if not _is_file(path):
        return
    with suppress(OSError), path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        if at is not None and not size - FAR_BYTES < at <= size:
            at = None
        begin = max(0, (size if at is None else at) - READ_BYTES)
        file.seek(begin)
        lines = list(_told_lines(file.read(), begin))
        chosen = {*range(max(0, len(lines) - count), len(lines))}
        if at is not None:
            before = sum(line.begin < at for line in lines)
            chosen |= {*range(max(0, before - AROUND), min(len(lines), before + AROUND))}
        yield from _in_columns(
            {number: parts_of(_told(lines[number].text)) for number in sorted(chosen)}
        )


class _Line(NamedTuple):
    """A line of a log, and the number of the byte that it begins with."""

    begin: int
    text: str


def _told_lines(data: bytes, begin: int) -> Iterator[_Line]:
    """Go through the lines that say something; the frames of a stack trace only if nothing else is.

    Args:
        data: A piece of the log.
        begin: Where it begins.
    """
    lines = list[_Line]()
    for piece in data.splitlines(keepends=True):
        if (text := piece.decode(errors="replace")).strip():
            lines.append(_Line(begin, text))
        begin += len(piece)
    yield from [line for line in lines if not _FRAME.match(line.text)] or lines


def _in_columns(shown: Mapping[int, LogLine]) -> Iterator[str]:
    """Lay lines out, by their numbers; a sign stands where others are left out between them."""
    has_time = any(line.time for line in shown.values())
    has_level = any(line.level for line in shown.values())
    last = min(shown, default=0)
    for number, line in shown.items():
        if number > last + 1:
            yield LEFT_OUT
        last = number
        head = f"{line.time[:TIME_WIDTH]:<{TIME_WIDTH}}  " if has_time else ""
        head += f"{line.level:<{LEVEL_WIDTH}}  " if has_level else ""
        for part, piece in enumerate(wrapped(line.message)):
            yield (head if part == 0 else " " * len(head)) + piece


def wrapped(message: str) -> list[str]:
    """Return a message in lines of at most `COLUMNS` characters.

    An empty message is one empty line.
    """
    text = visible(message, MOST_CHARS)
    return textwrap.wrap(text, COLUMNS, break_on_hyphens=False) or [""]


def _told(line: str) -> str:
    """Return the beginning of a line as text of others may be shown, with no secret in it."""
    return _SECRET.sub(_HIDDEN, visible(line.strip()[:LINE_CHARS], LINE_CHARS))


def _is_file(path: Path) -> bool:
    """Return whether a path is a plain file, and no link to one."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):
        return False
