"""Kill a design at each of its crash points in a tiny workload, one by one.

Golden runs behind the proxy say which effects there are. Then each crash point is met in a run of
its own: the design is killed there, started again, drained and judged. If that is asked for,
changes to disks are effects too, and an instance may come back to another disk than it had. A crash
point that does not come in three tries is listed as missed.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Final

from upheld.errors import UsageProblem
from upheld.guesses import did_you_mean
from upheld.protocol.manifest import Manifest
from upheld.spec.depths import Depth
from upheld.sweep.answers import asked
from upheld.sweep.journal import Journal
from upheld.sweep.lanes import SideBySide
from upheld.sweep.life import NO_FAULT, Life, Subject
from upheld.sweep.points import (
    CrashPoint,
    Result,
    Trace,
    crash_points,
    is_effect,
    is_steady,
    pairs,
    shortest,
    within,
)
from upheld.sweep.report import show
from upheld.trial.rig import Rig
from upheld.ui.progress import Progress
from upheld.ui.timeleft import Mean
from upheld.verdicts import Verdict

TRIES: Final = 3
GOLDEN_RUNS: Final = 8  # at most: a wave may fall into two transactions by chance
ITSELF: Final = "itself"  # the oracle of an application that has no model
LIVES: Final = 3  # of a first crash whose recovery gets crash points: the shortest is taken


@dataclass(frozen=True)
class Choice:
    """The crash points to meet, by name or by depth.

    If `points` names any, those whose names match are met, or else those of the depth. With
    `is_paired`, the second crash points in their recoveries as well.
    """

    points: Sequence[str] = ()
    depth: Depth = "full"
    is_paired: bool = False
    lanes: SideBySide | None = None  # several are met side by side


@dataclass
class Sweep:
    """The runs of one subject: golden ones, and one or more for each crash point.

    An application without an adapter is its own oracle. It is asked once what comes of each wave,
    before the first run, and its runs all have these waves.
    """

    subject: Subject
    say: Callable[[str], None]
    answers: Result | None = None

    def unanswered(self) -> Result | None:
        """Ask an application for its answers; return a result if there are none.

        The prefix rule is claimed only if its outputs show what input they come from.
        """
        application = self.subject.manifest.application
        if application is None or application.oracle != ITSELF:
            return None
        if self.answers is None:
            life = Life(self.subject, "answers")
            point = CrashPoint(phase=NO_FAULT, api="none", number=1, side="before")
            self.answers = life.result(point, life.feed_all)
            if self.answers.verdict is Verdict.UPHELD:
                said = asked(self.subject, life.trial.history, self.answers.seconds)
                self.subject = said.subject
                self.say(said.text)
        return None if self.answers.verdict is Verdict.UPHELD else self.answers

    def golden(self) -> tuple[Trace, Result]:
        """Run the workload without a fault; return its trace and the last run's result.

        The trace is empty if a run is not upheld, or an application gives no answers.
        """
        if silent := self.unanswered():
            return [], silent
        traces: list[Trace] = []
        commits_markers = False
        while len(traces) < GOLDEN_RUNS and not is_steady(traces):
            number = len(traces) + 1
            life = Life(self.subject, "golden", number)
            result = life.result(
                CrashPoint(phase=NO_FAULT, api="none", number=number, side="before")
            )
            if result.verdict is not Verdict.UPHELD:
                return [], result
            traces.append([effect for effect in life.trace if is_effect(effect[1])])
            commits_markers |= life.commits_markers
            self.say(f"no fault, run {number}: {len(traces[-1])} effects, {result.seconds:.1f} s")
        self.subject = replace(self.subject, commits_markers=commits_markers)
        return shortest(traces), result

    def crash(self, point: CrashPoint, lives: int = 1) -> Result:
        """Crash at a point `lives` times, and return one result.

        It is the first that is not upheld, or else the one with the shortest recovery.
        """
        results = []
        for _ in range(lives):
            results.append(self._try(point))
            if results[-1].verdict is not Verdict.UPHELD:
                return results[-1]
        return min(results, key=lambda result: len(result.recovery))

    def _try(self, point: CrashPoint) -> Result:
        """Try a few times until the crash point comes."""
        for number in range(1, TRIES + 1):
            result = Life(self.subject, str(point), number, point).result(point)
            if result.verdict:
                break
        result.tries = number
        return result


def run(
    rig: Rig, manifest: Manifest, journal: Journal, progress: Progress, choice: Choice
) -> list[Result]:
    """Meet the chosen crash points, and return their results.

    Those that have no result yet are met, or all of them if each has one. Each result is written
    down before the next crash point is met. The results are in the order of the crash points, and
    pairs follow them. If the design is not upheld without a fault, that result is the only one.
    """
    subject = Subject(rig, manifest, journal.plan.program, journal.plan.mode)
    sweep = Sweep(subject, progress.message)
    wanted = [point for point in choice.points if "+" in point]
    is_paired = choice.is_paired or bool(wanted)
    if not journal.points or (
        not choice.points and not journal.remaining(journal.points, is_paired=is_paired)
    ):
        trace, golden = sweep.golden()
        if golden.verdict is not Verdict.UPHELD:
            return [golden]
        plan = journal.plan
        journal.begin([*crash_points(trace, plan.scope, plan.sides, plan.left)], rig.seed)
    first = _chosen(choice, journal.points)
    if choice.lanes:
        choice.lanes.meet(journal, journal.remaining(first) or first, progress)
        return [journal.results[point] for point in first]
    if silent := sweep.unanswered():
        return [silent]
    due = journal.remaining(first)
    _crash_at_all(
        sweep, journal, due if due or wanted else first, progress, LIVES if is_paired else 1
    )
    twice = [pair for point in first for pair in pairs(journal.results[point])] if is_paired else []
    if wanted:
        twice = _named(wanted, twice)
        first = _named([point for point in choice.points if point not in wanted], first)
    if twice:
        _crash_at_all(sweep, journal, journal.remaining(twice) or twice, progress)
    return [journal.results[point] for point in (*first, *twice)]


def _chosen(choice: Choice, there: list[CrashPoint]) -> list[CrashPoint]:
    """Return the first crash points that a choice asks for; of a pair, its first one."""
    if not choice.points:
        return within(choice.depth, there)
    return _named([point.partition("+")[0] for point in choice.points], there)


def _named(patterns: Iterable[str], there: list[CrashPoint]) -> list[CrashPoint]:
    """Return the crash points whose names match one of the patterns, in their order.

    Raises:
        UsageProblem: A pattern matches none.
    """
    found = set[CrashPoint]()
    for pattern in patterns:
        named = {point for point in there if fnmatchcase(str(point), pattern)}
        if not named:
            near = did_you_mean(pattern, map(str, there))
            raise UsageProblem(f"There is no point {pattern}.{near}")
        found |= named
    return [point for point in there if point in found]


def _crash_at_all(
    sweep: Sweep, journal: Journal, due: list[CrashPoint], progress: Progress, lives: int = 1
) -> None:
    """Meet crash points one after the other, and write down and show each result."""
    mean = Mean(len(due))
    progress.begin(len(due), mean.seconds)
    for point in due:
        progress.started(str(point))
        result = sweep.crash(point, lives)
        journal.add(result)
        mean.finished()
        show(result, progress)
    progress.end()
