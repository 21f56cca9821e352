"""Durations of rows: medians of recorded runs, and the order that they give a run.

They are shipped. The medians come from one machine, so they are estimates on every other machine:
`timeleft` scales them by the time that a run has taken so far. `tools/durations.py` makes the file.
"""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from upheld.errors import UsageProblem
from upheld.reading import read_bytes

FILE: Final = Path(__file__).parents[1] / "data" / "durations.json"
UNKNOWN_S: Final = 5.0  # if no recorded row is like this one
WRONG: Final = "broken/"  # the names of the wrong designs begin with it
MODEL: Final = "plain"  # the design that each wrong design is made from

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Key = TypeVar("Key")


class Recorded(BaseModel):
    """The recorded durations of one design."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    boot_s: Seconds = 0.0  # that the first row of a run takes beyond its median
    rows_s: dict[str, Seconds]  # id of a row -> median
    # Of rows that the design declines; they tell nothing of another design's pace.
    unsupported_s: dict[str, Seconds] = {}


class Durations(BaseModel):
    """Medians in seconds, by design and row."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    designs: dict[str, Recorded] = {}

    def knows(self, design_name: str) -> bool:
        """Return whether the design, or the one that it is made from, was recorded."""
        return _model(design_name) in self.designs

    def boot_seconds(self, design_name: str) -> float:
        """Estimate how many seconds longer the first row takes.

        The estimate for an unknown design is the longest that is known.
        """
        if recorded := self.designs.get(_model(design_name)):
            return recorded.boot_s
        return max((each.boot_s for each in self.designs.values()), default=0.0)

    def seconds(self, design_name: str, row_id: str) -> float:
        """Estimate the seconds that a row takes.

        That is its median, if it was recorded; else an estimate from rows and designs like it.
        """
        name = _model(design_name)
        if name not in self.designs:
            known = (self._median(each, row_id) for each in self.designs)
            return max((seconds for seconds in known if seconds is not None), default=UNKNOWN_S)
        found = self._median(name, row_id)
        return UNKNOWN_S if found is None else found

    def news_seconds(self, design_name: str, row_id: str) -> float:
        """Estimate the seconds that a row's verdict costs.

        They are infinite for a row that the design declined: it brings no news at any price.
        """
        recorded = self.designs.get(_model(design_name))
        if recorded and row_id in recorded.unsupported_s:
            return math.inf
        return self.seconds(design_name, row_id)

    def _median(self, name: str, row_id: str) -> float | None:
        """Return the row's median in seconds.

        Without one, return another design's median at this design's pace, or else the median of
        sibling rows; None if the design has no recorded row.
        """
        own = self.designs[name].rows_s
        if row_id in own:
            return own[row_id]
        if row_id in self.designs[name].unsupported_s:
            return self.designs[name].unsupported_s[row_id]
        others = [
            recorded.rows_s[row_id] * self._pace(name, other)
            for other, recorded in self.designs.items()
            if row_id in recorded.rows_s
        ]
        if others:
            return max(others)
        siblings = self._by_scenario[name].get(_scenario(row_id)) or list(own.values())
        return statistics.median(siblings) if siblings else None

    def _pace(self, name: str, other: str) -> float:
        """Return the seconds that one design takes for a second of the other.

        Only rows that both have are compared.
        """
        own = self.designs[name].rows_s
        others = self.designs[other].rows_s
        common = own.keys() & others.keys()
        taken_s = sum(others[row_id] for row_id in common)
        return sum(own[row_id] for row_id in common) / taken_s if taken_s else 1.0

    @cached_property
    def _by_scenario(self) -> Mapping[str, Mapping[str, list[float]]]:
        """Group the medians: design -> scenario -> seconds of its rows."""
        found: dict[str, dict[str, list[float]]] = {}
        for name, recorded in self.designs.items():
            grouped = found.setdefault(name, {})
            for row_id, seconds in recorded.rows_s.items():
                grouped.setdefault(_scenario(row_id), []).append(seconds)
        return found


def load(path: Path | None = None) -> Durations:
    """Read the shipped medians, or those of another file.

    Raises:
        UsageProblem: The file is missing or damaged.
    """
    path = path or FILE
    content = read_bytes(path)
    try:
        return Durations.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        said = f"{where}: {first['msg']}" if where else first["msg"]
        raise UsageProblem(f"{path} holds no durations of rows ({said}).") from None


def most_news_first(
    keys: Iterable[Key], *, guarantee: Callable[[Key], str], seconds: Callable[[Key], float]
) -> list[Key]:
    """Sort rows so that each guarantee is judged early.

    The cheapest row of each guarantee comes first, by seconds; then the next row of each, and so
    on.
    """
    ranks: dict[str, int] = {}
    placed: list[tuple[int, float, Key]] = []
    for key in sorted(keys, key=seconds):
        rank = ranks[guarantee(key)] = ranks.get(guarantee(key), -1) + 1
        placed.append((rank, seconds(key), key))
    return [key for *_, key in sorted(placed, key=lambda place: place[:2])]


def _model(design_name: str) -> str:
    return MODEL if design_name.startswith(WRONG) else design_name


def _scenario(row_id: str) -> str:
    return row_id.partition("[")[0]
