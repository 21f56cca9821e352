"""One run of a design through a tiny workload, with or without a crash in it."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from upheld import garbage
from upheld.history import events
from upheld.history.marks import Happening
from upheld.injectors.disk.watcher import Hold
from upheld.injectors.proxy.errors import Moment
from upheld.injectors.proxy.rules import Rule
from upheld.kafka.failures import foreseen
from upheld.nemesis import disks
from upheld.nemesis.requests import arrive, evidence_of
from upheld.protocol.manifest import Manifest
from upheld.protocol.messages import Mode
from upheld.supervisor.instance import Instance
from upheld.sweep import workload
from upheld.sweep.points import (
    LATER,
    SIDES,
    WAVE,
    CrashPoint,
    Left,
    Result,
    Trace,
    is_effect,
    is_on_disk,
)
from upheld.text import escaped
from upheld.trial.deployment import Declaration
from upheld.trial.instances import Launch
from upheld.trial.rig import Rig
from upheld.trial.trial import Asked, Trial
from upheld.verdicts import ClientFailed, MarkMissed, Violated, judged

OWN: Final = "a"  # the name of the instance, and of its own folder
SUCCESSOR: Final = "b"
NO_FAULT: Final = "no fault"
START: Final = "start"
SHUTDOWN: Final = "shutdown"
WAVES: Final = 3  # each of them a transaction
LOOK_S: Final = 0.02
MARKERS_S: Final = 1  # not every design commits what follows the last record
OUTLIVING_TAKEOVER_MS: Final = 15_000
KEPT_ANOMALIES: Final = 20  # of a result; its history has all of them
CLAIMS: Final = {
    "fold": "the visible outputs are the fold of the committed input",
    "relation": "the outputs match the model under the mode",
    "side-effects": "nothing else changes on the broker",
}


@dataclass(frozen=True)
class Subject:
    """The design to sweep, its program and mode, and the rig that it runs on.

    `claims` are the checks that each run is judged by, with their sentences. A design that never
    commits what follows the last record is not waited for.
    """

    rig: Rig
    manifest: Manifest
    program: str
    mode: Mode
    claims: Mapping[str, str] = field(default_factory=lambda: CLAIMS)
    commits_markers: bool = True


class _PhaseThread:
    """A phase of the workload that runs until its end, or until the crash point comes."""

    def __init__(self, goes: Callable[[], object]) -> None:
        self._goes = goes
        self._ended: BaseException | None = None
        self._thread = threading.Thread(target=self._go, name="phase", daemon=True)
        self._thread.start()

    def _go(self) -> None:
        try:
            self._goes()
        except BaseException as error:  # noqa: BLE001 - raised by `finish`
            self._ended = error

    def comes_to(self, struck: threading.Event) -> bool:
        """Wait for the crash point, and return whether it came before the phase's end."""
        while self._thread.is_alive() and not struck.wait(LOOK_S):
            pass
        return struck.is_set()

    def join(self) -> None:
        """Wait for the end of a phase that lost its instance; its error says nothing new."""
        self._thread.join()

    def finish(self) -> None:
        """Wait for the end of the phase, and raise its error if it has one."""
        self._thread.join()
        if self._ended:
            raise self._ended


class Life:
    """One run through the workload; with a crash point, two lives of the design.

    `trace` holds what the design did, and `recovery` the APIs of the instance that came back.
    `evidence` says what is known of the effect at which the instance crashed.
    """

    def __init__(
        self, subject: Subject, name: str, attempt: int = 0, point: CrashPoint | None = None
    ) -> None:
        garbage.forget_ended()
        self.rig = subject.rig.of_a_row(subject.manifest)
        self.subject = subject
        self.commits_markers = False  # whether it was seen to do so
        self.point = point
        self.trace: Trace = []
        self.evidence: dict[str, object] = {}
        self.recovery: list[str] = []
        self.struck: threading.Event | None = None  # while the crash point is waited for
        asked = Asked(f"sweep.{name}", tuple(subject.claims.values()))
        self.trial = Trial(self.rig, subject.manifest, asked, attempt)
        self.application = self.trial.declare(
            Declaration(
                subject.program, subject.mode, workload.PARTITIONS, timeout_ms=_timeout_ms(point)
            )
        )
        self.application.through_proxy = True
        # All lives of an application have one input, so that it is asked once what comes of it.
        own = subject.manifest.application
        workload.prepare(self.application.input, own, self.rig.seed if own else self.trial.seed)

    def result(self, point: CrashPoint, goes: Callable[[], None] | None = None) -> Result:
        """Run, close the trial, and return the result under that point's name.

        Args:
            point: The name of the result.
            goes: What is done in place of a run through all phases.
        """
        ended: BaseException | None = None
        try:
            (goes or self._live)()
        except Exception as error:  # noqa: BLE001 - each error is a verdict
            ended = foreseen(error)
            if isinstance(ended, Violated):
                ended = self.trial.looked_at(ended)
        finally:
            self.trial.close()
        found = judged(self.trial.outcome(ended))
        # A failure of the harness's own client proves nothing: the crash point is met again.
        is_missed = isinstance(ended, MarkMissed) or (
            self.point is not None and isinstance(ended, ClientFailed)
        )
        reason = str(ended) if is_missed else found.reason
        seconds = self.trial.now_ms / 1000
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
            point=point,
            verdict=None if is_missed else found.verdict,
            reason=reason,
            anomalies=list(found.anomalies[:KEPT_ANOMALIES]),
            evidence=self.evidence,
            recovery=[api for api in self.recovery if is_effect(api)],
            seconds=seconds,
            history=str(self.trial.path.relative_to(self.rig.out)),
        )

    def _live(self) -> None:
        """Go through all phases, and make the claims."""
        trial = self.trial
        application = self.application
        self._phase(START, partial(trial.instances.start, application))
        for number in range(1, WAVES + 1):
            self._roll_back_upstream()
            self._phase(f"{WAVE}{number}", self._wave)
        self._phase(SHUTDOWN, partial(trial.instances.stop, application))
        if self.point and not self.evidence:
            raise MarkMissed(f"{self.point} did not come")
        trial.waits.settle(application)
        for check, sentence in self.subject.claims.items():
            trial.claim(check, application, sentence)

    def feed_all(self) -> None:
        """Write all waves, and start nothing: its oracle is asked after each of them."""
        for _ in range(2 * WAVES):
            self.trial.workload.feed_more(self.application)

    def _roll_back_upstream(self) -> None:
        """Have an aborted transaction in the input, and let the design commit what follows it.

        It may do so in a transaction without outputs, which would else be the first of the phase.
        """
        application = self.application
        self.trial.workload.feed_more(application)
        if application.progress_group is None or not self.subject.commits_markers:
            return

        def passed() -> bool:
            self.trial.monitor.tick(application)
            probes = self.trial.probes
            return probes.offsets(application) == probes.input_ends(application)

        self.commits_markers |= self.trial.recorder.wait(MARKERS_S, passed)

    def _wave(self) -> None:
        self.trial.workload.feed_more(self.application)
        self._drain()

    def _drain(self) -> None:
        """Wait until the input is drained, or until the crash point comes."""
        if self.struck is None:
            self.trial.waits.drain(self.application)
        elif not self.trial.recorder.wait(self.rig.progress_s, self._is_over):
            raise Violated.one(
                "stuck",
                f"{self.trial.manifest.name} neither drained its input nor sent what it dies at",
            )

    def _is_over(self) -> bool:
        """Return whether the wave is drained, or the crash point came in it."""
        assert self.struck
        self.trial.monitor.tick(self.application)
        return self.struck.is_set() or self.trial.monitor.is_drained(self.application)

    def _phase(self, name: str, goes: Callable[[], object]) -> None:
        """Go through a phase; if the crash point is in it, crash there and recover."""
        since_s = time.monotonic()
        if not self.point or self.point.phase != name:
            goes()
        else:
            self._crash_and_recover(self.point, goes)
        self.trace += [(name, api) for api in self._seen(since_s)]

    def _seen(self, since_s: float) -> list[str]:
        """Return the APIs of all requests and changes to disks since that time, in order."""
        door = self.application.door()
        seen = [(e.asked_s, e.api) for e in self.rig.open_proxy().exchanges if e.door == door]
        if self.rig.disk:
            changes = self.rig.disk.of(self.application.directory)
            seen += [(effect.at_s, effect.api) for effect in changes]
        return [api for at_s, api in sorted(seen) if at_s >= since_s]

    def _crash_and_recover(self, point: CrashPoint, goes: Callable[[], object]) -> None:
        """Crash at the point and start the instance again; a pair crashes once more meanwhile."""
        rule = self._crash_at(point, goes)
        if isinstance(rule, Rule) and point.side in LATER:
            self._hand_over(rule)
            return
        self._claim_fold()
        since_s = time.monotonic()
        if point.then:
            self._crash_at(point.then, self._restart)
            self._claim_fold()
        self._restart()
        self.recovery = self._seen(since_s)
        if point.phase == SHUTDOWN:
            self.trial.instances.stop(self.application)

    def _restart(self) -> None:
        self.trial.instances.start(self.application)
        self._drain()

    def _claim_fold(self) -> None:
        """Claim the fold of what is visible while no instance runs.

        Before the first wave there is no input to fold, and the claim could prove nothing.
        """
        if "fold" not in self.subject.claims or not self.application.input.ends:
            return
        self.trial.waits.settle(self.application, until_decided=False)
        self.trial.claim("fold", self.application, self.subject.claims["fold"])

    def _arm(self, point: CrashPoint) -> Rule | Hold:
        """Have the disk's watcher or the proxy hold the effect of a crash point."""
        if self.rig.disk and is_on_disk(point.api):
            hold = Hold(self.application.directory, point.api, point.number)
            self.rig.disk.arm(hold)
            return hold
        moment: Moment = "after" if point.side == "after" else "before"
        rule = Rule(self.application.door(), point.api, "hold", moment, point.number)
        self.rig.open_proxy().arm(rule)
        return rule

    def _crash_at(self, point: CrashPoint, goes: Callable[[], object]) -> Rule | Hold:
        """Go on until the effect is held, and kill or pause the instance; return what held it.

        Raises:
            MarkMissed: The effect did not come.
        """
        self.rig.pool(self.trial.manifest).prepare()  # an instance has to come back
        rule = self._arm(point)
        self.struck = rule.struck
        victim = self.application.running.get(OWN)
        phase = _PhaseThread(goes)
        if not phase.comes_to(rule.struck):
            phase.finish()
            raise MarkMissed(f"{point} did not come")
        self._kill_or_pause(point, victim)
        if isinstance(rule, Rule) and point.side in SIDES:
            self.rig.open_proxy().release(rule, is_lost=True)
        if self.rig.disk:
            self.rig.disk.disarm()
        phase.join()
        self.struck = None
        self.evidence = _evidence(rule)
        said = Happening.CRASH_POINT.text.format(api=point.api, side=point.side)
        self.trial.recorder.mark(Happening.CRASH_POINT, said, **self.evidence)
        self._change_disk(point.left)
        return rule

    def _kill_or_pause(self, point: CrashPoint, victim: Instance | None) -> None:
        """Kill the instance, or pause it if it is to be a zombie."""
        if point.side == "zombie":
            self.trial.instances.pause(self.application)
            return
        if victim:  # an instance that was told to stop is no longer among those that run
            self.application.running[OWN] = victim
        self.trial.instances.kill(self.application)

    def _change_disk(self, left: Left) -> None:
        """Keep, roll back or wipe the instance's own disk, and mark what was there."""
        if left == "rolled-back" and self.rig.disk:
            kept, lost = self.rig.disk.roll_back(self.application.directory / OWN)
            self.trial.recorder.mark(Happening.UNSYNCED_LOST, files=kept + lost, lost=lost)
        elif left == "wiped":
            disks.wipe(self.trial, self.application, OWN, may_be_empty=True)

    def _hand_over(self, rule: Rule) -> None:
        """Let the request arrive after a successor has drained the input.

        Then a zombie goes on with what it gets of the answer.
        """
        trial = self.trial
        application = self.application
        zombie = application.running.pop(OWN, None)
        trial.instances.start(application, SUCCESSOR, Launch(in_place_of=OWN))
        trial.waits.drain(application, outputs_too=False)
        arrive(trial, rule)
        if zombie:
            application.running[OWN] = zombie
            trial.waits.zombie(application, zombie)
            trial.instances.kill(application)
        application.running[OWN] = application.running.pop(SUCCESSOR)


def _timeout_ms(point: CrashPoint | None) -> int:
    """Return the timeout of transactions; 0 is the usual one.

    The transaction of who crashed outlives the takeover, or the broker settles it and the successor
    is not needed (docs/adr/0020).
    """
    return OUTLIVING_TAKEOVER_MS if point and point.side in LATER else 0


def _evidence(rule: Rule | Hold) -> dict[str, object]:
    """Return what a mark says of the effect that was held."""
    if isinstance(rule, Rule):
        assert rule.exchange
        return evidence_of(rule.exchange)
    assert rule.effect
    file = escaped(str(rule.effect.path.relative_to(rule.folder)))
    return {"file": file, "pid": rule.effect.pid}
