"""The results of a sweep on disk, so that a later sweep can go on from there."""

import json
import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

import upheld
from upheld.errors import UsageProblem
from upheld.protocol.manifest import Manifest
from upheld.protocol.messages import Mode
from upheld.reading import loaded, read_bytes
from upheld.sweep.points import LEFT, SIDES, CrashPoint, Left, Result, Scope, Side, pairs

NAME: Final = "sweep.jsonl"


@dataclass(frozen=True)
class Plan:
    """A design in one program and mode, and the kinds of crash points to sweep.

    Without disks, no change to a disk is a crash point, and the instance's own disk is kept.
    Results count for one plan alone. Another version of the design or of the harness, a changed
    manifest and other deadlines make another plan.
    """

    design: str
    program: str
    mode: Mode
    scope: Scope
    sides: tuple[Side, ...] = SIDES
    disks: tuple[Left, ...] = ()
    version: str = ""  # of the design
    manifest: str = ""  # its digest
    time_scale: float = 1.0

    @classmethod
    def of(cls, design: Manifest, program: str, mode: Mode, scope: Scope) -> "Plan":
        """Return the plan of a design as its manifest is now."""
        return cls(
            design.name, program, mode, scope, version=design.version, manifest=_digest(design)
        )

    @property
    def left(self) -> tuple[Left, ...]:
        """Fates of the instance's own disk: each gives a crash point of its own."""
        return self.disks or LEFT[:1]

    @property
    def head(self) -> dict[str, object]:
        """The plan as the first line of a journal says it."""
        return {
            "upheld": upheld.__version__,
            "design": self.design,
            "version": self.version,
            "manifest": self.manifest,
            "program": self.program,
            "mode": self.mode,
            "points": self.scope,
            "sides": [*self.sides],
            "disk": [*self.disks],
            "time_scale": self.time_scale,
        }


class Journal:
    """The crash points of a sweep and their results.

    They stand in `sweep.jsonl` of the sweep's folder. The first line holds the plan, the seed and
    the crash points; each other line is a result.

    Raises:
        UsageProblem: The folder has a `sweep.jsonl` that is none, or one of another plan or seed.
    """

    def __init__(self, out: Path, plan: Plan, seed: int | None = None) -> None:
        self.path = out / NAME
        self.plan = plan
        self.seed: int | None = seed
        self.broker: str | None = None  # kind and version
        self.points: list[CrashPoint] = []
        self.results: dict[CrashPoint, Result] = {}
        if self.path.exists():
            self._read()

    @classmethod
    def new(cls, out: Path, plan: Plan) -> "Journal":
        """Return an empty one, whatever an earlier sweep left in the folder."""
        (out / NAME).unlink(missing_ok=True)
        return cls(out, plan)

    def _read(self) -> None:
        """Read what an earlier sweep wrote, and drop a last line that was cut off."""
        *lines, _ = read_bytes(self.path).split(b"\n")
        try:
            first, *others = map(loaded, lines)
            self.points = [CrashPoint(**point) for point in first.pop("cuts")]
            seed_there = _seed(first["seed"])
            found = [Result(**line) for line in others]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise UsageProblem(
                f"{self.path} is no record of a sweep; choose another folder with --out."
            ) from None
        here = self.plan.head | ({} if self.seed is None else {"seed": self.seed})
        self._demand_same(here, first)
        self.seed = seed_there
        self.broker = first.get("broker")
        self.results = {result.point: result for result in found}
        os.truncate(self.path, sum(len(line) + 1 for line in lines))

    def go_on(self, broker: str) -> None:
        """Go on with this broker.

        Raises:
            UsageProblem: There are results on another one.
        """
        if self.results:
            self._demand_same({"broker": broker}, {"broker": self.broker})
        is_new = broker != self.broker
        self.broker = broker
        if is_new and self.seed is not None and self.points:
            self.begin(self.points, self.seed)

    def _demand_same(self, here: dict[str, object], there: dict[str, object]) -> None:
        """Raise UsageProblem, and name what differs from an earlier sweep."""
        differs = [
            f"{name} was {there.get(name)!r} and is {value!r}"
            for name, value in here.items()
            if there.get(name) != value
        ]
        if differs:
            raise UsageProblem(
                f"{self.path} is of another sweep ({'; '.join(differs)}); choose another folder "
                "with --out."
            )

    def begin(self, points: list[CrashPoint], seed: int) -> None:
        """Write the plan, the seed and the crash points, and forget earlier results.

        The file is whole at every moment.
        """
        self.points = points
        self.seed = seed
        self.results = {}
        head = self.plan.head | {
            "seed": seed,
            "broker": self.broker,
            "cuts": [point.model_dump() for point in points],
        }
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(head) + "\n", encoding="utf-8")
        new.replace(self.path)

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


def _digest(design: Manifest) -> str:
    """Return the digest of all that a design's manifest says, with what it extends."""
    return sha256(design.model_dump_json(exclude={"folder"}).encode()).hexdigest()


def _seed(value: object) -> int:
    """Return a seed as it was written; raise TypeError if it is none."""
    if type(value) is not int:
        raise TypeError("a seed is a whole number")
    return value
