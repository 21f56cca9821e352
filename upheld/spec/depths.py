"""The depth of a run: how much of the specification it judges.

`quick` is a row a documented guarantee. `core` is the cheapest rows that leave nothing undemanded;
upheld.lint.cover says what is demanded. `full` is all rows. Each depth holds the ones before it. A
row's depth is a tag on its Examples table. A share is a part of the rows that the depth leaves out.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Literal, cast, get_args

from upheld.errors import UsageProblem

Depth = Literal["quick", "core", "full"]
DEPTHS: Final[tuple[Depth, ...]] = get_args(Depth)
DEPTH_TAGS: Final = tuple(f"@{depth}" for depth in DEPTHS)
DEFAULT: Final[Depth] = "core"
MOST_SHARES: Final = 10_000


def depth_of(tags: Iterable[str]) -> Depth:
    """Return the depth that a row's tags give it.

    A row without such a tag is judged at full depth alone.
    """
    given = [tag for tag in DEPTH_TAGS if tag in tags]
    return cast(Depth, given[0].removeprefix("@")) if given else "full"


def is_within(depth: Depth, asked: Depth) -> bool:
    """Return whether rows of a depth are judged if another one is asked for."""
    return DEPTHS.index(depth) <= DEPTHS.index(asked)


@dataclass(frozen=True)
class Share:
    """The K-th of N equal parts, counted from 1."""

    number: int
    count: int

    def __str__(self) -> str:
        """Return the share as the option says it: `3/8`."""
        return f"{self.number}/{self.count}"

    def holds(self, row_id: str) -> bool:
        """Return whether a row is in this part.

        It is the same on every machine, and in every version that has the row.
        """
        digest = sha256(row_id.encode()).digest()
        return int.from_bytes(digest[:8]) % self.count == self.number - 1


def share_of(text: str, option: str) -> Share:
    """Read `K/N`.

    Raises:
        UsageProblem: The text is no share, or K is not from 1 to N.
    """
    number, slash, count = text.partition("/")
    parts = (number, count)
    if slash and all(part.isascii() and part.isdecimal() and len(part) < 6 for part in parts):
        share = Share(int(number), int(count))
        if 1 <= share.number <= share.count <= MOST_SHARES:
            return share
    said = (
        f"{option} {text!r} is not K/N with K from 1 to N and N at most {MOST_SHARES}, as in 3/8."
    )
    raise UsageProblem(said)
