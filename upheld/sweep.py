"""Every place at which a design can die in a tiny workload, one after the other.

Two crashes between the same neighbouring requests that change something leave the broker alike; so
the places to die of a black box are the cuts of what it sends, and can be counted. A golden run
behind the proxy says which requests there are. Then each is met twice, before the broker has it and
after, with its answer unread: the design is killed there, started again, drained and judged. Its
changes to disks are places too, if that is asked for, and an instance's own disk may be another one
when it comes back. What is not met in three tries is listed as missed.
"""

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict
from rich.table import Table

from upheld.errors import UsageProblem
from upheld.generators.ledger import Send, ledger
from upheld.history import events
from upheld.history.marks import Happening
from upheld.injectors.disk import Hold
from upheld.injectors.proxy import EFFECTS, TRANSACTION, Rule
from upheld.injectors.proxy.errors import Moment
from upheld.nemesis import disks
from upheld.nemesis.requests import arrive, evidence_of
from upheld.protocol.manifest import Manifest
from upheld.protocol.messages import Mode
from upheld.report import COLOURS
from upheld.spec.depths import Depth
from upheld.trial.deployment import Declaration
from upheld.trial.instances import Launch
from upheld.trial.rig import Rig
from upheld.trial.trial import Trial
from upheld.trial.waits import SETTLE_S
from upheld.ui.progress import Progress
from upheld.ui.timeleft import Mean
from upheld.verdicts import Anomaly, MarkMissed, Verdict, Violated, judged

Points = Literal["txn", "all"]
Side = Literal["before", "after", "late", "zombie"]
Left = Literal["kept", "rolled-back", "wiped"]
SIDES: tuple[Side, ...] = ("before", "after")  # those that are always met
LATER: tuple[Side, ...] = ("late", "zombie")
LEFT: tuple[Left, ...] = ("kept", "rolled-back", "wiped")
OWN = "a"  # the instance, and its own folder
NO_FAULT, RECOVERY = "no fault", "recovery"
TYPICAL = "transaction-2"  # the phase that the others repeat
WAVES = 3  # each of them a transaction
ENTRIES, ACCOUNTS, BRANCHES, PARTITIONS = 24, 8, 4, 2  # of a wave
TRIES = 3
GOLDEN = 8  # runs at most: a wave may fall into two transactions by chance
AGREED = 3  # so often the fewest effects of each phase have to have come
LIVES = 3  # of a first death whose recoveries are to be died in: the shortest is taken
LOOK_S = 0.02
CLAIMS = {
    "fold": "the visible outputs are the fold of the committed input",
    "relation": "the outputs match the model under the mode",
    "side-effects": "nothing else changes on the broker",
}


class Cut(BaseModel):
    """A place to die: at the n-th request of an API, or change to a kind of file, in a phase of the
    workload.

    before: the broker never has it. after: the broker has done what it asks, and nobody reads the
    answer. late: it arrives when a successor has drained the input. zombie: whoever sent it stands
    still until then, and goes on with it. Whoever comes back finds its own disk kept, rolled back
    to what was synced, or wiped. Of a pair, `then` is the place in its recovery where it dies
    again.
    """

    model_config = ConfigDict(frozen=True)

    phase: str
    api: str
    number: int
    side: Side
    left: Left = "kept"
    then: "Cut | None" = None

    def __str__(self) -> str:
        """As it is reported, and asked for again: `transaction-2.end_txn.1.after`, or
        `ONE+recovery.produce.1.before`.
        """
        left, then = (
            "" if self.left == "kept" else f".{self.left}",
            f"+{self.then}" if self.then else "",
        )
        return f"{self.phase}.{self.api}.{self.number}.{self.side}{left}{then}"


class Result(BaseModel):
    """What became of a cut; no verdict where it was missed."""

    cut: Cut
    verdict: Verdict | None = None
    reason: str = ""
    anomalies: list[Anomaly] = []
    evidence: dict[str, Any] = {}
    recovery: list[str] = []  # the effects of whoever came back, by API
    tries: int = 0
    seconds: float = 0.0
    history: str = ""


@dataclass
class Sweep:
    """A design, the program and the mode that it is swept in, and the rig that it is swept on."""

    rig: Rig
    manifest: Manifest
    program: str
    mode: Mode

    def golden(self, say: Callable[[str], None]) -> tuple[list[tuple[str, str]], Result]:
        """Live through the workload with no fault: every effect, as phase and API in their order,
        and what it came to.
        """
        traces: list[list[tuple[str, str]]] = []
        while len(traces) < GOLDEN and not is_steady(traces):
            life = _Life(self, "golden", len(traces) + 1)
            result = life.result(
                Cut(phase=NO_FAULT, api="none", number=len(traces) + 1, side="before")
            )
            if result.verdict is not Verdict.UPHELD:
                return [], result
            traces.append([effect for effect in life.trace if is_effect(effect[1])])
            say(f"no fault, run {len(traces)}: {len(traces[-1])} effects, {result.seconds:.1f} s")
        return shortest(traces), result

    def die(self, cut: Cut, lives: int = 1) -> Result:
        """Die there, come back, drain, and be judged, so many times; the first that is not upheld,
        or the shortest recovery.
        """
        results = []
        for _ in range(lives):
            results.append(self._met(cut))
            if results[-1].verdict is not Verdict.UPHELD:
                return results[-1]
        return min(results, key=lambda result: len(result.recovery))

    def _met(self, cut: Cut) -> Result:
        """Once more where the place did not come."""
        for number in range(1, TRIES + 1):
            result = _Life(self, str(cut), number, cut).result(cut)
            if result.verdict:
                break
        result.tries = number
        return result


def is_on_disk(api: str) -> bool:
    """Whether it is a change to a kind of file, and no request."""
    return ":" in api


def is_effect(api: str) -> bool:
    """Whether it changes something."""
    return api in EFFECTS or is_on_disk(api)


def cuts(
    trace: list[tuple[str, str]],
    points: Points,
    sides: Collection[Side],
    left: Collection[Left] = LEFT[:1],
) -> Iterator[Cut]:
    """The sides of each effect, in the order in which they came; who starts or stops has no
    successor to be late for.

    A change to a disk has no answer: what comes after it comes before the next one.
    """
    counted = Counter[tuple[str, str]]()
    for phase, api in trace:
        if is_on_disk(api) or api in (TRANSACTION if points == "txn" else EFFECTS):
            counted[phase, api] += 1
            for side in SIDES[:1] if is_on_disk(api) else sides:
                if side in SIDES or phase.startswith("transaction"):
                    for each in left if side in SIDES else LEFT[:1]:
                        yield Cut(
                            phase=phase, api=api, number=counted[phase, api], side=side, left=each
                        )


def within(depth: Depth, there: Sequence[Cut]) -> list[Cut]:
    """Those of a depth: full is all of them, core what the second wave does, quick its last
    request.

    A later wave repeats what the second does; the first one comes with what is done once, and so do
    start and stop.
    """
    if depth == "full":
        return list(there)
    second = [cut for cut in there if cut.phase == TYPICAL]
    if depth == "core":
        return second
    last = [(cut.api, cut.number) for cut in second if not is_on_disk(cut.api)][-1:]
    return [cut for cut in second if (cut.api, cut.number) in last]


def pairs(result: Result) -> Iterator[Cut]:
    """The places to die again in the recovery from a first death; none where that was not
    upheld.
    """
    if result.verdict is Verdict.UPHELD:
        for cut in cuts([(RECOVERY, api) for api in result.recovery], "all", SIDES):
            yield result.cut.model_copy(update={"then": cut})


def shortest(traces: list[list[tuple[str, str]]]) -> list[tuple[str, str]]:
    """The trace with the fewest effects of each phase."""
    return [effect for runs in _by_phase(traces).values() for effect in min(runs, key=len)]


def is_steady(traces: list[list[tuple[str, str]]]) -> bool:
    """Whether the fewest effects of each phase came often enough to be believed."""
    lengths = [[len(run) for run in runs] for runs in _by_phase(traces).values()]
    return bool(lengths) and all(counts.count(min(counts)) >= AGREED for counts in lengths)


def _by_phase(traces: list[list[tuple[str, str]]]) -> dict[str, list[list[tuple[str, str]]]]:
    phases = dict.fromkeys(phase for trace in traces for phase, _ in trace)
    return {
        phase: [[effect for effect in trace if effect[0] == phase] for trace in traces]
        for phase in phases
    }


def _wave(seed: int, *, wave: int) -> list[Send]:
    """What is fed at once: behind an aborted transaction, so that it is not there by halves to be
    read in two batches.
    """
    sends = ledger(
        seed,
        entries=ENTRIES,
        accounts=ACCOUNTS,
        branches=BRANCHES,
        partitions=PARTITIONS,
        aborted_transactions=1,
        wave=wave,
    )
    return sorted(sends, key=lambda send: not send.aborted)


class _Life:
    """One run through the workload; with a cut, two lives of the design."""

    def __init__(self, sweep: Sweep, name: str, attempt: int = 0, cut: Cut | None = None) -> None:
        self.rig, self.cut = sweep.rig, cut
        self.trace: list[tuple[str, str]] = []
        self.evidence: dict[str, Any] = {}
        self.recovery: list[str] = []
        self.struck: threading.Event | None = None  # while the request to die at is waited for
        self.trial = Trial(sweep.rig, sweep.manifest, f"sweep.{name}", attempt)
        self.application = self.trial.declare(Declaration(sweep.program, sweep.mode, PARTITIONS))
        self.application.through_proxy = True
        self.application.input.wave = partial(_wave, self.trial.seed)

    def result(self, cut: Cut) -> Result:
        """Live, be judged, and leave nothing behind."""
        ended: Exception | None = None
        try:
            self._live()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a verdict, as that of a scenario is
            ended = error
        finally:
            self.trial.close()
        found = judged(ended or self.trial.not_offered)
        reason = str(ended) if isinstance(ended, MarkMissed) else found.reason
        seconds, path = self.trial.now_ms / 1000, self.trial.path
        self.trial.history.add(
            events.Ended(
                verdict=found.verdict,
                code=found.code,
                reason=reason,
                anomalies=found.anomalies,
                seconds=seconds,
            )
        )
        self.trial.history.close()
        return Result(
            cut=cut,
            verdict=None if isinstance(ended, MarkMissed) else found.verdict,
            reason=reason,
            anomalies=list(found.anomalies[:20]),
            evidence=self.evidence,
            recovery=[api for api in self.recovery if is_effect(api)],
            seconds=seconds,
            history=str(path.relative_to(self.rig.out)),
        )

    def _live(self) -> None:
        trial, application = self.trial, self.application
        self._phase("start", partial(trial.instances.start, application))
        for number in range(1, WAVES + 1):
            self._phase(f"transaction-{number}", self._wave)
        self._phase("shutdown", partial(trial.instances.stop, application))
        if self.cut and not self.evidence:
            raise MarkMissed(f"{self.cut} did not come")
        trial.waits.settle(application)
        for check, sentence in CLAIMS.items():
            trial.claim(check, application, sentence)

    def _wave(self) -> None:
        self.trial.workload.feed_more(self.application)
        self._drain()

    def _drain(self) -> None:
        """To the end, or until somebody is to be killed."""
        if self.struck is None:
            self.trial.waits.drain(self.application)
        elif not self.trial.recorder.wait(self.rig.progress_s, self._is_over):
            raise Violated.one(
                "stuck",
                f"{self.trial.manifest.name} neither drained its input nor sent what it dies at",
            )

    def _is_over(self) -> bool:
        """Whether the wave is drained, or somebody is to be killed in it."""
        assert self.struck
        self.trial.monitor.tick(self.application)
        return self.struck.is_set() or self.trial.monitor.is_drained(self.application)

    def _phase(self, name: str, goes: Callable[[], object]) -> None:
        """Go through a phase; die where the cut is in it, and live again."""
        since_s = time.monotonic()
        if not self.cut or self.cut.phase != name:
            goes()
        else:
            self._die(goes)
        self.trace += [(name, api) for api in self._seen(since_s)]

    def _seen(self, since_s: float) -> list[str]:
        """What it has sent, and done to its disks, since then."""
        own = [e for e in self.rig.open_proxy().exchanges if e.door == self.application.door()]
        seen = [(exchange.asked_s, exchange.api) for exchange in own]
        if self.rig.disk:
            seen += [
                (effect.at_s, effect.api) for effect in self.rig.disk.of(self.application.directory)
            ]
        return [api for at_s, api in sorted(seen) if at_s >= since_s]

    def _die(self, goes: Callable[[], object]) -> None:
        """Go on until the request is held, kill whoever sent it, and start again; a pair dies once
        more on the way.
        """
        assert self.cut
        trial, application, then = self.trial, self.application, self.cut.then
        rule = self._strike(self.cut, goes)
        if isinstance(rule, Rule) and self.cut.side in LATER:
            self._succeed(rule)
            return
        self._claim_fold()
        since_s = time.monotonic()
        if then:
            self._strike(then, self._come_back)
            self._claim_fold()
        self._come_back()
        self.recovery = self._seen(since_s)
        if self.cut.phase == "shutdown":
            trial.instances.stop(application)

    def _come_back(self) -> None:
        self.trial.instances.start(self.application)
        self._drain()

    def _claim_fold(self) -> None:
        """What is visible while nobody runs; a design with no group says only when it is done how
        far it came.
        """
        if self.application.group:
            self.trial.waits.settle(self.application, until_decided=False)
            self.trial.claim("fold", self.application, CLAIMS["fold"])

    def _arm(self, cut: Cut) -> Rule | Hold:
        if self.rig.disk and is_on_disk(cut.api):
            hold = Hold(self.application.directory, cut.api, cut.number)
            self.rig.disk.arm(hold)
            return hold
        moment: Moment = "after" if cut.side == "after" else "before"
        rule = Rule(self.application.door(), cut.api, "hold", moment, cut.number)
        self.rig.open_proxy().arm(rule)
        return rule

    def _strike(self, cut: Cut, goes: Callable[[], object]) -> Rule | Hold:
        """Go on until it is held, and kill or stop whoever did it; MarkMissed where it does not
        come.
        """
        trial, application = self.trial, self.application
        self.rig.pool(trial.manifest).prepare()  # somebody has to come back
        rule = self._arm(cut)
        self.struck = rule.struck
        victim = application.running.get(OWN)
        ended: list[BaseException] = []

        def go() -> None:
            try:
                goes()
            except BaseException as error:  # noqa: BLE001 - it is the end of whoever is killed, or raised again
                ended.append(error)

        going = threading.Thread(target=go, name="phase", daemon=True)
        going.start()
        while going.is_alive() and not rule.struck.wait(LOOK_S):
            pass
        if not rule.struck.is_set():
            going.join()
            if ended:
                raise ended[0]
            raise MarkMissed(f"{cut} did not come")
        if cut.side == "zombie":
            trial.instances.pause(application)
        else:
            if victim:  # who was told to stop is no longer among those that run
                application.running[OWN] = victim
            trial.instances.kill(application)
        if isinstance(rule, Rule) and cut.side in SIDES:
            self.rig.open_proxy().release(rule, is_lost=True)
        if self.rig.disk:
            self.rig.disk.disarm()
        going.join()
        self.struck = None
        if isinstance(rule, Rule):
            assert rule.exchange
            self.evidence = evidence_of(rule.exchange)
        else:
            assert rule.effect
            self.evidence = {
                "file": str(rule.effect.path.relative_to(rule.folder)),
                "pid": rule.effect.pid,
            }
        said = Happening.CRASH_POINT.text.format(api=cut.api, side=cut.side)
        trial.mark(Happening.CRASH_POINT, said, **self.evidence)
        self._leave(cut.left)
        return rule

    def _leave(self, left: Left) -> None:
        """Do to the instance's own disk what is to have become of it, and mark what there was."""
        if left == "rolled-back" and self.rig.disk:
            kept, lost = self.rig.disk.roll_back(self.application.directory / OWN)
            self.trial.mark(Happening.UNSYNCED_LOST, files=kept + lost, lost=lost)
        elif left == "wiped":
            disks.wipe(self.trial, self.application, OWN, may_be_empty=True)

    def _succeed(self, rule: Rule) -> None:
        """Have a successor drain the input, let the request arrive, and let a zombie go on with
        what it has of an answer.
        """
        trial, application = self.trial, self.application
        zombie = application.running.pop(OWN, None)
        trial.instances.start(application, "b", Launch(in_place_of=OWN))
        trial.waits.drain(application, outputs_too=False)
        arrive(trial, rule)
        if zombie:
            application.running[OWN] = zombie
            trial.instances.resume(application)
            trial.recorder.wait(SETTLE_S, lambda: zombie.is_over)
            trial.instances.kill(application)
        application.running[OWN] = application.running.pop("b")


class Record:
    """What a sweep has come to so far, in `sweep.jsonl` of its folder: whoever goes on there has
    that behind them.
    """

    def __init__(  # noqa: PLR0913, PLR0917 (what a sweep is)
        self,
        out: Path,
        design: str,
        program: str,
        mode: Mode,
        points: Points,
        sides: Collection[Side] = SIDES,
        left: Collection[Left] = (),
    ) -> None:
        self.path, self.program, self.mode, self.points, self.sides = (
            out / "sweep.jsonl",
            program,
            mode,
            points,
            sides,
        )
        self.left_behind = left or LEFT[:1]
        self.what = {
            "design": design,
            "program": program,
            "mode": mode,
            "points": points,
            "sides": [*sides],
        }
        self.what |= {"disk": [*left]}
        self.seed: int | None = None
        self.cuts: list[Cut] = []
        self.results: dict[Cut, Result] = {}
        if self.path.exists():
            self._read()

    def _read(self) -> None:
        lines = [
            line
            for line in self.path.read_bytes().splitlines(keepends=True)
            if line.endswith(b"\n")
        ]
        try:
            first, *others = map(json.loads, lines)
            self.cuts = [Cut(**cut) for cut in first.pop("cuts")]
            self.seed = first.pop("seed")
            found = [Result(**line) for line in others]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UsageProblem(
                f"{self.path} is no record of a sweep; choose another folder with --out."
            ) from None
        if first != self.what:
            said = ", ".join(f"{name} {value}" for name, value in first.items())
            raise UsageProblem(
                f"{self.path} is of another sweep ({said}); choose another folder with --out."
            )
        self.results = {result.cut: result for result in found}
        os.truncate(self.path, sum(map(len, lines)))  # a last one may be cut

    def begin(self, cuts: list[Cut], seed: int) -> None:
        """Write down what there is to do."""
        self.cuts, self.results = cuts, {}
        head = self.what | {"seed": seed, "cuts": [cut.model_dump() for cut in cuts]}
        self.path.write_text(json.dumps(head) + "\n", encoding="utf-8")

    def left(self, asked: list[Cut], *, is_paired: bool = False) -> list[Cut]:
        """Those of which it is not known what they come to, or what a second death in their
        recovery does.
        """
        known = [cut for cut in asked if cut in self.results]
        seconds = [pair for cut in known for pair in pairs(self.results[cut])] if is_paired else []
        return [cut for cut in asked + seconds if cut not in self.results]

    def add(self, result: Result) -> None:
        """Write down what a cut came to."""
        self.results[result.cut] = result
        with self.path.open("a", encoding="utf-8") as file:
            file.write(result.model_dump_json() + "\n")


def run(  # noqa: PLR0913 (what to do of it is by name)
    rig: Rig,
    manifest: Manifest,
    record: Record,
    progress: Progress,
    *,
    points: Sequence[str] = (),
    depth: Depth = "full",
    is_paired: bool = False,
) -> list[Result]:
    """Do what is left of a sweep within its depth, or of those points whose names match; all of
    that where nothing is left.

    Each is written down before the next begins; the results are in the order of the cuts, and pairs
    follow them. Of a design that is not right with no fault at all it is that alone.
    """
    sweep = Sweep(rig, manifest, record.program, record.mode)
    wanted = [point for point in points if "+" in point]
    is_paired |= bool(wanted)
    if not record.cuts or (not points and not record.left(record.cuts, is_paired=is_paired)):
        trace, golden = sweep.golden(progress.message)
        if golden.verdict is not Verdict.UPHELD:
            return [golden]
        record.begin(list(cuts(trace, record.points, record.sides, record.left_behind)), rig.seed)
    named = [point.partition("+")[0] for point in points]
    asked = _named(named, record.cuts) if points else within(depth, record.cuts)
    left = record.left(asked)
    _meet(sweep, record, left if left or wanted else asked, progress, LIVES if is_paired else 1)
    twice = [pair for cut in asked for pair in pairs(record.results[cut])] if is_paired else []
    if wanted:
        twice = _named(wanted, twice)
        asked = _named([point for point in points if point not in wanted], asked)
    if twice:
        _meet(sweep, record, record.left(twice) or twice, progress)
    return [record.results[cut] for cut in (*asked, *twice)]


def _named(patterns: Iterable[str], there: list[Cut]) -> list[Cut]:
    """Those of these names, or whose names match, in their order; UsageProblem where one has
    none.
    """
    found = set[Cut]()
    for pattern in patterns:
        named = {cut for cut in there if fnmatchcase(str(cut), pattern)}
        if not named:
            near = get_close_matches(pattern, map(str, there), n=1)
            raise UsageProblem(
                f"There is no point {pattern}.{f' Did you mean {near[0]}?' if near else ''}"
            )
        found |= named
    return [cut for cut in there if cut in found]


def _meet(sweep: Sweep, record: Record, due: list[Cut], progress: Progress, lives: int = 1) -> None:
    mean = Mean(len(due))
    progress.begin(len(due), mean.seconds)
    for cut in due:
        progress.started(str(cut))
        result = sweep.die(cut, lives)
        record.add(result)
        mean.finished()
        progress.finished(
            f"{cut} {result.seconds:.1f} s",
            result.verdict or "missed",
            style=COLOURS[result.verdict] if result.verdict else "yellow",
            is_quiet=result.verdict is Verdict.UPHELD,
        )
    progress.end()


def table(results: list[Result]) -> Table:
    """Requests down; how many cuts there are of each, how many were met, and what they came to."""
    there = [verdict for verdict in Verdict if any(result.verdict is verdict for result in results)]
    grid = Table("phase", "request, or file", "points", "hit", *map(str, there), pad_edge=False)
    for place in dict.fromkeys(_place(result.cut) for result in results):
        counts = Counter(result.verdict for result in results if _place(result.cut) == place)
        met = [str(counts[verdict] or "-") for verdict in there]
        grid.add_row(*place, str(counts.total()), str(counts.total() - counts[None]), *met)
    hit = sum(result.verdict is not None for result in results)
    grid.caption = f"{len(results)} points, {hit} hit, {len(results) - hit} missed"
    return grid


def _place(cut: Cut) -> tuple[str, str]:
    return (
        (f"{cut.phase}, then {cut.then.phase}", cut.then.api) if cut.then else (cut.phase, cut.api)
    )


def card(result: Result, again: str, seed: int) -> str:
    """What is not upheld, for a person."""
    lines = [f"{(result.verdict or 'missed').upper()}  {result.cut}"]
    lines += [f"  reason    {result.reason}"] if result.reason else []
    lines += [f"  anomaly   {anomaly.name}: {anomaly.text}" for anomaly in result.anomalies[:3]]
    point = "" if result.cut.phase == NO_FAULT else f" --point {result.cut}"
    return "\n".join(
        [*lines, f"  history   {result.history}", f"  again     {again}{point} --seed {seed}"]
    )


def exit_code(results: list[Result]) -> int:
    """As of a run: what is missed is inconclusive."""
    verdicts = {result.verdict for result in results}
    for verdict, code in (
        (Verdict.VIOLATED, 1),
        (Verdict.HARNESS_ERROR, 3),
        (Verdict.INCONCLUSIVE, 2),
        (None, 2),
    ):
        if verdict in verdicts:
            return code
    return 0 if Verdict.UPHELD in verdicts else 5
