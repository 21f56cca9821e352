"""Everything that a scenario waits for: all polling of one attempt is here."""

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

from upheld.checks import CHECKS
from upheld.checks.stores import unsettled
from upheld.checks.timing import BUSY
from upheld.checks.view import view_of
from upheld.history import events
from upheld.history.marks import Happening
from upheld.history.outputs import by_output
from upheld.injectors.proxy.timeouts import Timeout
from upheld.kafka.consumers import ReadMessage
from upheld.kafka.raw import RawClient
from upheld.protocol.manifest import Manifest
from upheld.supervisor.host import Cores, cpu_s
from upheld.supervisor.instance import Instance
from upheld.threads import Heard
from upheld.trial.application import Application
from upheld.trial.instances import Instances, Launch
from upheld.trial.monitor import Monitor
from upheld.trial.probes import Probes
from upheld.trial.recorder import POLL_S, Recorder
from upheld.trial.rig import Rig
from upheld.trial.stillness import Stillness
from upheld.verdicts import MarkMissed, NotOffered, Violated

SETTLE_S = 1.5  # how long nothing may follow a recorded end
# How often an input that is being drained is asked whether it moves, beside whether it is drained.
PROGRESS_LOOK_S = 0.1
STILL_MS = 15_000  # a loaded machine keeps no design from moving for so long
CLEANED_MS = 500  # how often the cleaner has a look on our brokers
ROUNDS = 4  # so often each key is asked for, at least, before an answer counts as missing


@dataclass(frozen=True)
class Promise:
    """The time of a promise, and the load of the machine in it."""

    since_ms: int
    tolerance_ms: int
    canary_ms: int  # from produce to read_committed, as the promise was looked at first
    cores: Cores  # since then


@dataclass(frozen=True)
class LookedOn:
    """How long an outcome was looked for after its promised time.

    Attributes:
        looked_on_ms: The milliseconds beyond the promised time.
        still_ms: For how many of them nothing had moved at the end; 0 if something had, or if the
            outcome came.
    """

    looked_on_ms: int = 0
    still_ms: int = 0


NOT_LOOKED_ON = LookedOn()


@dataclass
class _Progress:
    """How far an input was drained when it was looked at last."""

    looked_s: float
    moved_s: float
    seen: object = None


@dataclass
class Waits:
    """Waits for the applications of one attempt, each with its deadline."""

    recorder: Recorder
    rig: Rig
    manifest: Manifest
    probes: Probes
    instances: Instances
    monitor: Monitor
    cores: Cores = field(default_factory=Cores)  # since the attempt began, or the last promise

    def watch(self, application: Application, until_ms: int) -> None:
        """Record the outputs until then.

        Raises:
            Violated: An instance gives up or vanishes meanwhile.
        """
        while self.recorder.now_ms < until_ms:
            self.monitor.tick(application)
            self.probes.observe(application)

    def decided_s(self, application: Application) -> float:
        """Return the seconds after which every transaction is decided.

        If its producer does not decide it, the broker aborts it by then.
        """
        own_ms = application.timeouts.get(Timeout.TRANSACTION, 0)
        timeout_ms = max(own_ms, application.event.transaction_timeout_ms)
        return timeout_ms / 1000 + self.rig.progress_s

    def demand_quick(self, application: Application, within_ms: int) -> None:
        """Demand that a dead member is noticed within the time of a promise.

        Raises:
            NotOffered: The application asks for a session that is as long, whatever it is told.
        """
        session_ms = application.timeouts.get(Timeout.SESSION, 0)
        if session_ms >= within_ms:
            raise NotOffered(
                f"{self.manifest.name} is not told its session timeout, which is {session_ms} ms: "
                f"nobody takes over from a dead instance before that, and {within_ms} ms are "
                "promised"
            )

    # --- until the input is drained

    def drain(self, application: Application, *, outputs_too: bool = True) -> None:
        """Wait until the input is drained.

        Raises:
            Violated: The design processes no more.
        """
        began_s = time.monotonic()
        progress = _Progress(looked_s=began_s, moved_s=began_s)
        while not self._is_done(application, outputs_too=outputs_too):
            self.monitor.tick(application)
            if application.stopped:  # an instance is to be started again
                return
            if application.sight.observed_ms is not None:
                self.probes.observe(application)
            now_s = time.monotonic()
            if now_s > progress.looked_s + PROGRESS_LOOK_S:
                progress.looked_s = now_s
                self._demand_progress(application, progress)
            time.sleep(POLL_S)
        self.probes.observe(application)
        application.sight.observed_ms = None

    def _is_done(self, application: Application, *, outputs_too: bool) -> bool:
        """Return whether the input is drained.

        If no offsets say so, it still has to be when nothing more has come for a while: a replay
        may begin late, and goes back before it comes to the end again.
        """
        if not self.monitor.is_drained(application, outputs_too=outputs_too):
            return False
        if application.progress_group is not None:
            return True
        self._await_still(application)
        return self.monitor.is_drained(application, outputs_too=outputs_too)

    def _await_still(self, application: Application) -> None:
        """Wait until nothing more comes of an input whose last states are all visible.

        No offsets say so. An application without an adapter says how long an output may take.
        """
        still_ms = 1000 * SETTLE_S
        if application.event.contract:
            still_ms = max(still_ms, application.visible_ms)
        stillness = Stillness(lambda: self.recorder.now_ms)

        def is_still() -> bool:
            if application.sight.observed_ms is not None:
                self.probes.observe(application)
            since_ms = stillness.look(self.probes.ends(application))
            return since_ms >= still_ms * self.rig.time_scale

        self.recorder.wait(self.rig.progress_s + still_ms / 1000, is_still)

    def _demand_progress(self, application: Application, progress: _Progress) -> None:
        """Raise Violated if neither offsets nor outputs have moved for too long."""
        committed = self.probes.offsets(application)
        now = committed, self.probes.ends(application)
        if now != progress.seen:
            progress.seen = now
            progress.moved_s = progress.looked_s
        elif progress.looked_s - progress.moved_s > self.rig.progress_s * self.rig.time_scale:
            rest = f"the group's offsets rest at {committed}"
            if application.progress == "none":
                rest = f"its outputs rest at {now[1][1]}"
            raise Violated.one(
                "stuck",
                f"{self.manifest.name} processes no more: for {self.rig.progress_s:g} s "
                f"{rest}, the visible input ends at {application.input.ends}",
            )

    def drain_again(self, application: Application, *, may_refuse: bool = False) -> bool:
        """Drain the input, and start each instance once more that stops loudly.

        A supervisor of processes does that as well.

        Args:
            application: The application whose input is drained.
            may_refuse: An instance may refuse to start again. Then all are stopped.

        Returns:
            Whether the input was drained: no instance has refused.
        """
        application.is_struck = True
        launch = Launch(may_refuse=may_refuse)
        while True:
            for name in application.stopped:
                application.restarted.add(name)
                if self.instances.start(application, name, launch) is None:
                    self._stop_the_others(application, name)
                    return False
            application.stopped.clear()
            self.drain(application)
            if not application.stopped:
                return True

    def _stop_the_others(self, application: Application, refused: str) -> None:
        """Take away an instance that refused to start, and stop the others; look at the end."""
        self.instances.let_go(application, refused)
        for name in list(application.running):
            self.instances.stop(application, name)
        self.settle(application)

    # --- until offsets and outputs are what they stay

    def settle(
        self,
        application: Application,
        *,
        until_decided: bool | None = None,
        since_ms: int | None = None,
        waited_ms: int | None = None,
    ) -> None:
        """Wait until no transaction is open; record committed input and visible outputs.

        Args:
            application: The application whose outputs are looked at.
            until_decided: If false, a transaction that a dead instance left open stays so, and
                readers stop before it. If it is not said, so it is for a design that is down and
                whose truth is not in the offsets of its group: its next start decides.
            since_ms: When readers began to wait for the outputs, if not now.
            waited_ms: How long readers waited, if it was measured already.

        Raises:
            Violated: A transaction stays open long after its timeout.
        """
        if until_decided is None:
            until_decided = application.progress_group is not None or bool(application.running)
        began_ms = self.recorder.now_ms if since_ms is None else since_ms
        committed: events.Offsets | None = None
        stable_ms: int | None = None

        def decided() -> bool:
            nonlocal committed, stable_ms
            if not until_decided and self.probes.is_left_open(application):
                committed = self.probes.committed(application, stable=False)
                self.probes.observe(application)
                # All the while: offsets and outputs that were read in between belong together.
                return self.probes.is_left_open(application)
            if not self.probes.all_decided(application):
                return False
            stable_ms = stable_ms or self.recorder.now_ms
            committed = self.probes.committed(application)
            return committed is not None or application.progress_group is None

        if not self.recorder.wait(self.decided_s(application), decided):
            raise Violated.one(
                "stuck",
                f"a transaction of {self.manifest.name} is still open long after its timeout",
            )
        self.probes.observe(application)
        if waited_ms is None:
            waited_ms = (stable_ms or self.recorder.now_ms) - began_ms
        self.recorder.history.add(
            events.Committed(
                at_ms=self.recorder.now_ms,
                application=application.name,
                offsets=committed,
                stable_ms=waited_ms,
                down=not application.running,
            )
        )
        if application.store:
            self.probes.look_at_store(application)

    def zombie(self, application: Application, zombie: Instance) -> None:
        """Let a paused instance go on, until it has ended or decided its transaction.

        The settle time begins after that. On a loaded machine a commit may take longer.
        """
        self.instances.resume(application)
        within_s = self.decided_s(application)
        self.recorder.wait(within_s, lambda: zombie.is_over or self.probes.all_decided(application))
        self.recorder.wait(SETTLE_S, lambda: zombie.is_over)

    def catch_up(self, application: Application, within_ms: int) -> None:
        """Wait until the committed offsets are the ends of the input's log; record both.

        If the time is up before that, they are recorded as they are then.
        """
        self.probes.demand_offsets(application, "how far it is")
        began_ms = self.recorder.now_ms
        ends: events.Offsets = {}
        committed: events.Offsets | None = None

        def reached() -> bool:
            nonlocal committed, ends
            self.monitor.tick(application)
            ends = self.probes.input_ends(application)
            committed = self.probes.offsets(application)
            return committed == ends

        self.recorder.wait(within_ms / 1000, reached)
        now_ms = self.recorder.now_ms
        self.recorder.history.add(
            events.Committed(
                at_ms=now_ms,
                application=application.name,
                offsets=committed,
                stable_ms=now_ms - began_ms,
                down=False,
                high_watermark=ends,
            )
        )

    def watch_release(self, application: Application) -> "Future[int]":
        """Measure how many milliseconds a reader waits to pass what the outputs hold now.

        The measurement begins now, and goes on beside everything else.
        """
        broker = self.rig.broker
        partitions = application.partitions
        began_s = time.monotonic()
        _, wanted = self.probes.ends(application)
        released: Future[int] = Future()

        def watch() -> None:
            deadline = began_s + self.decided_s(application) * self.rig.time_scale
            raw = RawClient(broker.bootstrap, broker.client)
            while time.monotonic() < deadline:
                stable, _ = raw.ends(application.writes, dict.fromkeys(range(partitions), 0))
                if all(stable[p] >= end for p, end in wanted.items()):
                    break
                time.sleep(POLL_S)
            raw.close()
            released.set_result(round((time.monotonic() - began_s) * 1000))

        Heard(watch, name="release").start()
        return released

    def expect_failure(self, application: Application, name: str = "a") -> None:
        """Wait for the loud stop of an instance that was given a record it cannot read."""
        instance = application.running[name]
        if not self.recorder.wait(self.rig.progress_s, lambda: instance.is_over):
            raise Violated.one(
                "stuck",
                f"{self.manifest.name} neither went on nor said why not, on a record that it "
                "cannot read",
            )
        if instance.failed is None or instance.failed.kind != "poison":
            self.monitor.tick(application)
        self.instances.gave_up(application, name)
        self.settle(application)

    # --- until a promise is kept, or its time is up

    def rest(
        self, application: Application, promised_ms: int, *, may_look_on: bool = False
    ) -> None:
        """Let the input rest until its outcome is visible, or the promised time is up.

        If the application has a store, the outcome has to be there too.

        Args:
            application: The application whose outputs are looked at.
            promised_ms: The time that is promised, from the last append or `ready` on.
            may_look_on: Whether a late outcome is looked for longer, if others took the cores: it
                comes, or nothing moves any more. Then the load is no excuse.
        """
        since_ms = max(application.input.fed_ms, application.ready_ms)
        promise = self._promise(since_ms, promised_ms)
        while self.recorder.now_ms < since_ms + promised_ms:
            self.monitor.tick(application)
            if self.monitor.is_drained(application) and self._is_out(application):
                break
            time.sleep(POLL_S)
        others = self._others(promise)
        looked_on = NOT_LOOKED_ON
        if may_look_on and others > BUSY and not self._is_out(application):
            looked_on = self._look_on(application, lambda: self._is_out(application))
        self.probes.observe(application)
        if application.store:
            self.probes.look_at_store(application)
        self._look_ends(application, promise, self.recorder.now_ms, others, looked_on)

    def _look_on(self, application: Application, reached: Callable[[], bool]) -> LookedOn:
        """Look until the outcome is there, or until nothing has moved for long enough."""
        began_ms = self.recorder.now_ms
        most_ms = 1000 * self.rig.progress_s * self.rig.time_scale
        stillness = Stillness(lambda: self.recorder.now_ms)
        still_ms = looked_ms = 0
        while still_ms < STILL_MS and looked_ms < most_ms:
            self.monitor.tick(application)
            if reached():
                return LookedOn(self.recorder.now_ms - began_ms)
            still_ms = stillness.look(
                (self.probes.offsets(application), self.probes.ends(application))
            )
            looked_ms = self.recorder.now_ms - began_ms
            time.sleep(POLL_S)
        return LookedOn(looked_ms, still_ms if still_ms >= STILL_MS else 0)

    def _is_out(self, application: Application) -> bool:
        """Return whether every last state is visible, and in the store if there is one."""
        self.probes.observe(application)
        histories = by_output(self.recorder.history, application.name)
        views = [view_of(history, application.name) for history in histories]
        store = application.store
        is_stored = store is None or not unsettled(views[0], store.rows())
        return all(view.is_settled for view in views) and is_stored

    def first_output(
        self, application: Application, within_ms: int, known: int | None = None
    ) -> None:
        """Look for the first new output since the last cold start or switch of clusters.

        Args:
            application: The application whose outputs are looked at.
            within_ms: The time that is promised, from that start or switch on.
            known: How many outputs are not new; without it, all that were seen.
        """
        self.demand_quick(application, within_ms)
        since_ms = next(
            mark.at_ms
            for mark in reversed(list(self.recorder.history.of(events.Mark)))
            if mark.happening in {Happening.STARTED_COLD, Happening.CLUSTERS_SWITCHED}
        )
        old = self.probes.outputs_seen(application) if known is None else known

        def is_new() -> bool:
            self.monitor.tick(application)
            self.probes.observe(application)
            return self.probes.outputs_seen(application) > old

        self.recovers(application, since_ms, within_ms, is_new)

    def recovers(
        self, application: Application, since_ms: int, within_ms: int, reached: Callable[[], bool]
    ) -> None:
        """Look until the application has recovered, and mark after how many milliseconds.

        There is no mark if the promised time is up before that. If others took the cores, a late
        recovery is looked for longer.
        """
        promise = self._promise(since_ms, within_ms)
        while not (is_back := reached()) and self.recorder.now_ms < since_ms + within_ms:
            time.sleep(POLL_S)
        others = self._others(promise)
        looked_on = NOT_LOOKED_ON
        if not is_back and others > BUSY:
            looked_on = self._look_on(application, reached)
        looked_ms = self.recorder.now_ms
        if is_back:
            self.recorder.mark(Happening.RECOVERED, after_ms=looked_ms - since_ms)
        self._look_ends(application, promise, looked_ms, others, looked_on)

    def _promise(self, since_ms: int, tolerance_ms: int) -> Promise:
        cores = Cores()
        canary_ms = self.rig.reading.canary_ms()
        return Promise(since_ms, tolerance_ms, canary_ms, cores)

    def _others(self, promise: Promise) -> float:
        """Return the share of the cores that others took, at most, since a promise."""
        now = cpu_s()
        return round(max(promise.cores.others(now), self.cores.others(now)), 2)

    def _look_ends(
        self,
        application: Application,
        promise: Promise,
        looked_ms: int,
        others: float,
        looked_on: LookedOn = NOT_LOOKED_ON,
    ) -> None:
        """Record when a promise was looked at last, and the share of the cores of others."""
        self.recorder.history.add(
            events.InputRested(
                application=application.name,
                since_ms=promise.since_ms,
                looked_ms=looked_ms,
                tolerance_ms=promise.tolerance_ms,
                canary_ms=promise.canary_ms,
                others=others,
                harness=round(self.cores.harness(), 2),
                looked_on_ms=looked_on.looked_on_ms,
                still_ms=looked_on.still_ms,
            )
        )
        self.cores = Cores()

    # --- until the design answers as it should

    def query_all(self, application: Application, within_ms: int) -> None:
        """Ask for every key of the table until all answers are its last rows.

        The last answers stand if they were asked for after the promised time. On a slow machine
        that time passes while keys are asked for once, so each of them is asked for a few times.
        """
        until_ms = self.recorder.now_ms + within_ms
        rounds = 0
        while "query" in self.manifest.capabilities:
            began_ms = self.recorder.now_ms
            rounds += 1
            self.probes.observe(application)
            for key in application.keys:
                self.probes.query(application, key)
            is_answered = not CHECKS["answered"](self.recorder.history, application.name)
            if is_answered or (began_ms > until_ms and rounds >= ROUNDS):
                break

    def measure(
        self, application: Application, *, times: int = 0, within_ms: int = 0, name: str = "a"
    ) -> None:
        """Record how much state an instance says that it holds.

        Args:
            application: The application that it runs.
            times: If given, wait until that is at most so many times the first record.
            within_ms: The promised time, after which the size is recorded as it is.
            name: The name of the instance.

        Raises:
            NotOffered: The design does not say how much state it holds.
        """
        if "measure" not in self.manifest.capabilities:
            raise NotOffered(
                f"{self.manifest.name} does not say how much state it holds (capability measure)"
            )
        first = self.probes.first_size(application)
        until_ms = self.recorder.now_ms + within_ms
        while True:
            self.monitor.tick(application)
            reply = self.probes.measure(application, name)
            is_small = not first or not times or reply.size <= times * first.size
            if is_small or self.recorder.now_ms >= until_ms:
                break
            time.sleep(POLL_S)
        self.recorder.history.add(
            events.Measured(
                at_ms=self.recorder.now_ms,
                application=application.name,
                size=reply.size,
                unit=reply.unit,
            )
        )

    def await_cleaner(self, application: Application) -> None:
        """Watch rows come until the log cleaner has left fewer than half; mark how many.

        Raises:
            MarkMissed: The cleaner has left more.
            Violated: The design has written no row, and its input came all along.
        """
        left: list[ReadMessage] = []
        written = 0

        def cleaned() -> bool:
            nonlocal left, written
            self.watch(application, self.recorder.now_ms + CLEANED_MS)
            start = dict.fromkeys(range(application.partitions), 0)
            left = self.rig.reading.records(application.writes, start, committed=True)
            written = self.probes.outputs_seen(application)
            return 2 * len(left) < written

        if not self.recorder.wait(self.rig.progress_s, cleaned):
            if not written:
                raise Violated.one(
                    "stuck", f"{self.manifest.name} wrote no row to {application.writes}"
                )
            raise MarkMissed(f"{len(left)} of {written} rows of {application.writes} are left")
        size_bytes = sum(len(row.key() or b"") + len(row.value() or b"") for row in left)
        self.recorder.mark(
            Happening.TABLE_COMPACTED,
            rows_written=written,
            rows_left=len(left),
            bytes_left=size_bytes,
        )
