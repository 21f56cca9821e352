"""The crash points of a design, and what came of each.

A design is a black box that can crash anywhere. An effect is a request that changes something, or
a change to a disk. Two crashes between the same neighbouring effects leave the broker in the same
state. So the crash points can be counted: each effect has one before it and one after it.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from upheld.injectors.proxy.rules import EFFECTS, TRANSACTION
from upheld.spec.depths import Depth
from upheld.verdicts import Anomaly, Verdict

Scope = Literal["txn", "all"]
Side = Literal["before", "after", "late", "zombie"]
Left = Literal["kept", "rolled-back", "wiped"]
Trace = list[tuple[str, str]]  # the phase and the API of each effect, in their order

SIDES: Final[tuple[Side, ...]] = ("before", "after")  # those of every sweep
LATER: Final[tuple[Side, ...]] = ("late", "zombie")  # those that need a successor
LEFT: Final[tuple[Left, ...]] = ("kept", "rolled-back", "wiped")
RECOVERY: Final = "recovery"
WAVE: Final = "transaction-"  # the start of the name of a wave's phase, before its number
TYPICAL: Final = f"{WAVE}2"  # the phase that later waves repeat
AGREED: Final = 3  # how many runs have to show the fewest effects of a phase


class CrashPoint(BaseModel):
    """A place to crash: the n-th effect of a kind in a phase of the workload.

    The side says when the instance crashes:

    - before: the broker never has the request.
    - after: the broker has applied the request, and its answer is not read.
    - late: the request arrives when a successor has drained the input.
    - zombie: the sender stands still until then, and goes on with the answer.

    The instance's own disk is kept, rolled back to what was synced, or wiped. Of a pair, `then` is
    the crash point in the recovery from this one.
    """

    model_config = ConfigDict(frozen=True)

    phase: str
    api: str
    number: int
    side: Side
    left: Left = "kept"
    then: "CrashPoint | None" = None

    def __str__(self) -> str:
        """Return the name by which it is reported, and asked for again.

        For example `transaction-2.end_txn.1.after`, or `FIRST+recovery.produce.1.before`.
        """
        left = "" if self.left == "kept" else f".{self.left}"
        then = f"+{self.then}" if self.then else ""
        return f"{self.phase}.{self.api}.{self.number}.{self.side}{left}{then}"


class Result(BaseModel):
    """The result of a crash point; it has no verdict if the point was missed.

    The JSON of a sweep calls the point `cut`.
    """

    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=True)

    point: CrashPoint = Field(validation_alias="cut", serialization_alias="cut")
    verdict: Verdict | None = None
    reason: str = ""
    anomalies: list[Anomaly] = []
    evidence: dict[str, object] = {}
    recovery: list[str] = []  # the effects of the instance that came back, by API
    tries: int = 0
    seconds: float = 0.0
    history: str = ""


def is_on_disk(api: str) -> bool:
    """Return whether an effect changes a kind of file, and is no request."""
    return ":" in api


def is_effect(api: str) -> bool:
    """Return whether a request or a call changes something."""
    return api in EFFECTS or is_on_disk(api)


def crash_points(
    trace: Trace, scope: Scope, sides: Collection[Side], left: Collection[Left] = LEFT[:1]
) -> Iterator[CrashPoint]:
    """Yield the crash points of a trace, in the order of its effects.

    Phases that start or stop an instance have no `late` and no `zombie`: there is no successor. A
    change to a disk has `before` alone: it has no answer, and the time after it is the time before
    the next effect.
    """
    requests = TRANSACTION if scope == "txn" else EFFECTS
    counted = Counter[tuple[str, str]]()
    for phase, api in trace:
        if not (is_on_disk(api) or api in requests):
            continue
        counted[phase, api] += 1
        for side in SIDES[:1] if is_on_disk(api) else sides:
            if side in LATER and not phase.startswith(WAVE):
                continue
            for disk in left if side in SIDES else LEFT[:1]:
                yield CrashPoint(
                    phase=phase, api=api, number=counted[phase, api], side=side, left=disk
                )


def within(depth: Depth, points: Sequence[CrashPoint]) -> list[CrashPoint]:
    """Return the crash points of a depth.

    Full has all of them, core those of the second wave, and quick those of the second wave's last
    request. A later wave repeats the second one. The first wave has effects that happen once, and
    so have start and stop.
    """
    if depth == "full":
        return list(points)
    second = [point for point in points if point.phase == TYPICAL]
    if depth == "core":
        return second
    last = [(point.api, point.number) for point in second if not is_on_disk(point.api)][-1:]
    return [point for point in second if (point.api, point.number) in last]


def pairs(result: Result) -> Iterator[CrashPoint]:
    """Yield the second crash points in the recovery from a first one.

    There are none if the first one was not upheld.
    """
    if result.verdict is Verdict.UPHELD:
        recovery = [(RECOVERY, api) for api in result.recovery]
        for then in crash_points(recovery, "all", SIDES):
            yield result.point.model_copy(update={"then": then})


def shortest(traces: list[Trace]) -> Trace:
    """Return the trace with the fewest effects of each phase."""
    return [effect for runs in _by_phase(traces).values() for effect in min(runs, key=len)]


def is_steady(traces: list[Trace]) -> bool:
    """Return whether the fewest effects of each phase came often enough to believe."""
    lengths = [[len(run) for run in runs] for runs in _by_phase(traces).values()]
    return bool(lengths) and all(counts.count(min(counts)) >= AGREED for counts in lengths)


def _by_phase(traces: list[Trace]) -> dict[str, list[Trace]]:
    """Return what each trace holds of a phase, by phase."""
    phases = dict.fromkeys(phase for trace in traces for phase, _ in trace)
    return {phase: [_of_phase(trace, phase) for trace in traces] for phase in phases}


def _of_phase(trace: Trace, phase: str) -> Trace:
    return [effect for effect in trace if effect[0] == phase]
