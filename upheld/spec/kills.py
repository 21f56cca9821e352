"""The kill matrix: the rows that catch each wrong design.

It is measured once by `tools/kills.py`, and shipped as data. The choice of the rows of `core` reads
it, and it shows how strong a row is. A wrong design's own rows, which its design.toml names, need
not be in it: the tests of the wrong designs prove those.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from upheld.errors import UsageProblem
from upheld.reading import read_bytes

FILE: Final = Path(__file__).parents[1] / "data" / "kills.json"
FORMAT: Final = 1
UNSTEADY: Final = "unsteady"


class Kill(BaseModel):
    """How a row caught a wrong design."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    anomaly: str  # the worst one, which a card shows first
    check: str = ""  # whose claim did not hold; empty if the row was stuck before its first claim
    seconds: float
    times: int = 1  # that the row was judged, each time with this result


class Judged(BaseModel):
    """The results of the rows on which one wrong design was judged, by their ids."""

    model_config = ConfigDict(extra="forbid")

    killed: dict[str, Kill] = {}
    upheld: dict[str, int] = {}  # row -> how often it was judged, each time with this result
    # row -> inconclusive, unsupported or harness-error; or unsteady, if its results differ
    unproven: dict[str, str] = {}

    def rows(self) -> set[str]:
        """Return every row that need not be judged again."""
        return {*self.killed, *self.upheld, *self.unproven}

    def add(self, row: str, verdict: str, kill: Kill) -> None:
        """Count another result of a row.

        Args:
            row: The row's id.
            verdict: Its verdict this time.
            kill: How the row caught the design; it counts only if the verdict is violated.
        """
        known = self.killed.get(row)
        if self.unproven.get(row) == UNSTEADY:
            return
        if (
            verdict == "violated"
            and row not in self.upheld
            and (not known or known.anomaly == kill.anomaly)
        ):
            self.killed[row] = kill.model_copy(update={"times": 1 + (known.times if known else 0)})
            self.unproven.pop(row, None)
        elif verdict == "upheld" and not known:
            self.upheld[row] = 1 + self.upheld.get(row, 0)
            self.unproven.pop(row, None)
        elif verdict in {"violated", "upheld"}:
            self.killed.pop(row, None)
            self.upheld.pop(row, None)
            self.unproven[row] = UNSTEADY
        elif row not in self.rows():
            self.unproven[row] = verdict


class Kills(BaseModel):
    """The matrix: a wrong design's name -> the results of its rows."""

    model_config = ConfigDict(extra="forbid")

    format: int = FORMAT
    upheld: str = ""  # the version that judged
    designs: dict[str, Judged] = {}

    def of(self, design: str) -> Mapping[str, Kill]:
        """Return the rows that catch a design, each with the anomaly that it names."""
        return self.designs.get(design, Judged()).killed


def load(path: Path = FILE) -> Kills:
    """Read a matrix.

    Raises:
        UsageProblem: The file is missing, is damaged, or is of a newer format.
    """
    content = read_bytes(path)
    try:
        kills = Kills.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise UsageProblem(f"{path} is no kill matrix: {where}: {first['msg']}.") from None
    if kills.format > FORMAT:
        raise UsageProblem(
            f"{path} has format {kills.format}; this version reads {FORMAT} at most."
        )
    return kills


def save(kills: Kills, path: Path = FILE) -> None:
    """Write a matrix in the place of the existing one, whole or not at all."""
    kills.designs = dict(sorted(kills.designs.items()))
    for judged in kills.designs.values():
        judged.killed = dict(sorted(judged.killed.items()))
        judged.upheld = dict(sorted(judged.upheld.items()))
        judged.unproven = dict(sorted(judged.unproven.items()))
    part = path.with_name(f".{path.name}")
    part.write_text(json.dumps(kills.model_dump(mode="json"), indent=1) + "\n", encoding="utf-8")
    part.replace(path)
