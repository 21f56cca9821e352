"""Known failures: a file of lines *id, reason, link*, and how long each counts.

A waiver excuses a row that fails. Its columns are `owner=`, `until=` (a date) and `fixed_in=` (a
version of the design). From that date on, or from that version on, it does not count any more.
"""

import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Final, NamedTuple

from upheld.errors import UsageProblem
from upheld.guesses import did_you_mean
from upheld.protocol.refusals import short
from upheld.reading import read_text
from upheld.text import sentence

COLUMNS: Final = ("owner", "until", "fixed_in")
SOON_DAYS: Final = 14  # a waiver that ends within them is said
_COLUMN: Final = re.compile(r"(?P<name>[A-Za-z_-]+)\s*=\s*(?P<value>.*)")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_NUMBERS: Final = re.compile(r"v?(\d{1,9}(?:\.\d{1,9}){0,9})")
_FEWEST_COMMAS: Final = 2  # of a line: id, reason, link


class Waiver(NamedTuple):
    """Why a scenario or a row may fail, and how long.

    Attributes:
        reason: Why it fails.
        link: Where that is followed.
        owner: Who follows it; empty if nobody is named.
        until: The date from which it does not count.
        fixed_in: The version of the design from which it does not count; empty if none is named.
    """

    reason: str
    link: str
    owner: str = ""
    until: date | None = None
    fixed_in: str = ""

    def __str__(self) -> str:
        """Return the reason, the link, and the other columns as a person reads them."""
        said = {"owner": self.owner, "until": self.until, "fixed in": self.fixed_in}
        others = ", ".join(f"{name} {value}" for name, value in said.items() if value)
        return f"{self.reason} {self.link}" + (f" ({others})" if others else "")

    def lapsed(self, today: date, version: str) -> str:
        """Return why it does not count any more; empty if it counts.

        Args:
            today: The date of the run.
            version: The version of the design.
        """
        if self.until and today >= self.until:
            return f"a known failure until {self.until} alone: {self}"
        if self.fixed_in and numbers(version) >= numbers(self.fixed_in):
            return f"a known failure that version {self.fixed_in} was to mend: {self}"
        return ""

    def days_left(self, today: date) -> int | None:
        """Return for how many more days it counts; None if no date ends it."""
        return (self.until - today).days if self.until else None


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers that a version begins with, so that later ones are greater.

    A word behind them, such as `-rc1` or `-SNAPSHOT`, changes nothing. `2` and `2.0` are equal.
    A version that begins with no number has none.
    """
    found = _NUMBERS.match(version)
    parts = [int(part) for part in found[1].split(".")] if found else []
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)


def read(file: Path, called: str) -> dict[str, Waiver]:
    """Read a file of lines *id, reason, link* into id -> waiver.

    A reason may hold commas. Columns of the form `key=value` follow the link.

    Args:
        file: The file.
        called: Its name in a refusal, if it cannot be read.

    Raises:
        UsageProblem: The file or a line of it cannot be understood.
    """
    known: dict[str, Waiver] = {}
    for number, line in enumerate(read_text(file, called=called).splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            scenario, waiver = _line(line)
        except ValueError as error:
            raise UsageProblem(f"{file}, line {number}: {sentence(str(error))}") from None
        if scenario in known:
            raise UsageProblem(f"{file}, line {number}: {scenario} is listed twice.")
        known[scenario] = waiver
    return known


def demand_comparable(known: Mapping[str, Waiver], version: str, called: str) -> None:
    """Refuse `fixed_in` if the design's own version begins with no number.

    Args:
        known: Id -> waiver.
        version: The version of the design.
        called: The manifest of the design, for a refusal.

    Raises:
        UsageProblem: There is one.
    """
    for scenario, waiver in known.items():
        if waiver.fixed_in and not _NUMBERS.match(version):
            raise UsageProblem(
                f"{called}: the known failure {scenario} has fixed_in={waiver.fixed_in}, and "
                f"`version` is {version!r}, which begins with no number to compare it with."
            )


def _line(line: str) -> tuple[str, Waiver]:
    """Return the id and the waiver of a line."""
    columns: dict[str, str] = {}
    rest = line
    while rest.count(",") > _FEWEST_COMMAS and (found := _column(rest)):
        name = found["name"]
        if name not in COLUMNS:
            raise ValueError(
                f"there is no column {name}=; there are {', '.join(COLUMNS)}."
                f"{did_you_mean(name, COLUMNS)}"
            )
        if name in columns:
            raise ValueError(f"{name}= is given twice")
        columns[name] = found["value"].strip()
        rest = rest.rpartition(",")[0]
    first, _, after = rest.partition(",")
    middle, _, last = after.rpartition(",")
    scenario = first.strip()
    reason = middle.strip()
    link = last.strip()
    named = _column(rest)
    if not (scenario and reason and link) or (named and named["name"] in COLUMNS):
        raise ValueError(f"expected “id, reason, link”, this is {short(line)}")
    return scenario, _waiver(reason, link, columns)


def _waiver(reason: str, link: str, columns: Mapping[str, str]) -> Waiver:
    """Return a waiver with its columns, as they are written."""
    waiver = Waiver(reason, link, columns.get("owner", ""), fixed_in=columns.get("fixed_in", ""))
    if "owner" in columns and not waiver.owner:
        raise ValueError("owner= names nobody")
    if "fixed_in" in columns and not _NUMBERS.match(waiver.fixed_in):
        raise ValueError(
            f"fixed_in={short(waiver.fixed_in)} begins with no number, as in fixed_in=1.4.2"
        )
    return waiver._replace(until=_until(columns["until"])) if "until" in columns else waiver


def _column(line: str) -> re.Match[str] | None:
    """Return the last column of a line, if it is `key=value`."""
    return _COLUMN.fullmatch(line.rpartition(",")[2].strip())


def _until(value: str) -> date:
    try:
        if _DATE.fullmatch(value):
            return date.fromisoformat(value)
    except ValueError:
        pass
    raise ValueError(f"until={short(value)} is no date, as in until=2026-12-31")
