"""The results of a sweep on disk, so that a later sweep can go on from there."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from upheld.errors import UsageProblem
from upheld.protocol.messages import Mode
from upheld.reading import loaded, read_bytes
from upheld.sweep.points import LEFT, SIDES, CrashPoint, Left, Result, Scope, Side, pairs


@dataclass(frozen=True)
class Plan:
    """A design in one program and mode, and the kinds of crash points to sweep.

    Without disks, no change to a disk is a crash point, and the instance's own disk is kept.
    """

    design: str
    program: str
    mode: Mode
    scope: Scope
    sides: tuple[Side, ...] = SIDES
    disks: tuple[Left, ...] = ()

    @property
    def left(self) -> tuple[Left, ...]:
        """Fates of the instance's own disk: each gives a crash point of its own."""
        return self.disks or LEFT[:1]

    @property
    def head(self) -> dict[str, object]:
        """The plan as the first line of a journal says it."""
        return {
            "design": self.design,
            "program": self.program,
            "mode": self.mode,
            "points": self.scope,
            "sides": [*self.sides],
            "disk": [*self.disks],
        }


class Journal:
    """The crash points of a sweep and their results.

    They stand in `sweep.jsonl` of the sweep's folder. The first line holds the plan, the seed and
    the crash points; each other line is a result.

    Raises:
        UsageProblem: The folder has a `sweep.jsonl` that is none, or one of another plan.
    """

    def __init__(self, out: Path, plan: Plan) -> None:
        self.path = out / "sweep.jsonl"
        self.plan = plan
        self.seed: int | None = None
        self.points: list[CrashPoint] = []
        self.results: dict[CrashPoint, Result] = {}
        if self.path.exists():
            self._read()

    def _read(self) -> None:
        """Read what an earlier sweep wrote, and drop a last line that was cut off."""
        *lines, _ = read_bytes(self.path).split(b"\n")
        try:
            first, *others = map(loaded, lines)
            points = [CrashPoint(**point) for point in first.pop("cuts")]
            seed = _seed(first.pop("seed"))
            found = [Result(**line) for line in others]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UsageProblem(
                f"{self.path} is no record of a sweep; choose another folder with --out."
            ) from None
        if first != self.plan.head:
            said = ", ".join(f"{name} {value}" for name, value in first.items())
            raise UsageProblem(
                f"{self.path} is of another sweep ({said}); choose another folder with --out."
            )
        self.points = points
        self.seed = seed
        self.results = {result.point: result for result in found}
        os.truncate(self.path, sum(len(line) + 1 for line in lines))

    def begin(self, points: list[CrashPoint], seed: int) -> None:
        """Write the plan, the seed and the crash points, and forget earlier results."""
        self.points = points
        self.results = {}
        head = self.plan.head | {"seed": seed, "cuts": [point.model_dump() for point in points]}
        self.path.write_text(json.dumps(head) + "\n", encoding="utf-8")

    def remaining(self, asked: list[CrashPoint], *, is_paired: bool = False) -> list[CrashPoint]:
        """Return the crash points that have no result yet.

        With `is_paired`, these include the second crash points of those that have one.
        """
        wanted = [*asked]
        if is_paired:
            for point in asked:
                if first := self.results.get(point):
                    wanted += pairs(first)
        return [point for point in wanted if point not in self.results]

    def add(self, result: Result) -> None:
        """Write a result."""
        self.results[result.point] = result
        with self.path.open("a", encoding="utf-8") as file:
            file.write(result.model_dump_json() + "\n")


def _seed(value: object) -> int:
    """Return a seed as it was written; raise TypeError if it is none."""
    if type(value) is not int:
        raise TypeError("a seed is a whole number")
    return value
