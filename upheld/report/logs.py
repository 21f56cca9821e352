"""The last lines of an instance's log, laid out in columns: time, level, message.

Each library has its own order of time, level, thread and logger. The message stands last, and it is
the part that a reader needs: the other parts are found, shortened or left out.
"""

import os
import re
import stat
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from upheld.text import visible

LINES: Final = 4  # of each instance
COLUMNS: Final = 110  # of a line of the message
MOST_CHARS: Final = 600  # of a message; the middle of a longer one is left out
READ_BYTES: Final = 1 << 15  # of the log's end, in which the last lines are looked for
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


def last_lines(path: Path, count: int = LINES) -> Iterator[str]:
    """Go through the last lines of a log, in columns and wrapped.

    There are none if there is no log. A line of the log may take several of these.
    """
    if not _is_file(path):
        return
    with suppress(OSError), path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - READ_BYTES))
        lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
        telling = [line for line in lines if not _FRAME.match(line)]
        shown = [parts_of(_told(line)) for line in (telling or lines)[-count:]]
        has_time = any(line.time for line in shown)
        has_level = any(line.level for line in shown)
        for line in shown:
            head = f"{line.time[:TIME_WIDTH]:<{TIME_WIDTH}}  " if has_time else ""
            head += f"{line.level:<{LEVEL_WIDTH}}  " if has_level else ""
            for number, piece in enumerate(wrapped(line.message)):
                yield (head if number == 0 else " " * len(head)) + piece


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
