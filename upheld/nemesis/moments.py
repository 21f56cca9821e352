"""Moments to strike at, seen from outside.

The harness looks until the moment has come, holds everything still, looks again, then strikes. No
design is asked to help. Every hit leaves a mark with what was seen. If a design passed its whole
input without giving the moment, MarkMissed is raised, and the scenario is tried again.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from upheld.brokers.cluster import Cluster
from upheld.checks.delivery import cut
from upheld.checks.outside import outside
from upheld.checks.view import view_of
from upheld.history.events import Offsets
from upheld.history.marks import Happening
from upheld.history.outputs import by_output
from upheld.kafka.consumers import Position
from upheld.nemesis.visible import Visible
from upheld.programs import DEAD_LETTERS, Place, Program, Unreadable
from upheld.trial.application import Application
from upheld.trial.probes import with_further
from upheld.trial.trial import Trial
from upheld.verdicts import HarnessError, MarkMissed, Violated

Evidence = dict[str, Any]
WAVES = 3  # how often more input is given to a design that passed the moment unseen
# How often it is asked whether the moment has passed for good: to ask can take a tenth of a second.
DRAINED_S = 0.5
COMMITS = 3  # how many commits are looked at if a commit may come before its outputs
DECIDED_S = 0.1  # a commit that was on its way is through by then, though its producer stands still
UNDER_WAY_S = 0.03  # a commit that was asked for is through by then
# Long enough for an answer to be received and one more request to be sent; a second or two in all.
STEP_S = 0.001
STEPS = 300
# How long a leader of the outputs is silent. Its partitions get other leaders after two to six
# seconds; until then no output at all is acknowledged, because it is an in-sync replica.
SILENT_S = 15.0
COMMITS_IN_SILENCE = 2
READ_MS = 3_000  # a design that commits no more than it has sent on has read a small input by then
SPIN_S = 0.02  # how long one glimpse at a store lasts
# A small batch's transaction is open for some 20 ms; each look costs the broker and the harness a
# millisecond.
LOOK_S = 0.004
# The moments that no design has that writes outside of transactions.
TRANSACTIONS = {Happening.TRANSACTION_OPEN, Happening.SECOND_TRANSACTION_OPEN}


@dataclass(frozen=True)
class Moment:
    """A moment to strike at.

    `glimpse` is quick and asked all the time. `evidence` is asked when all stands still.
    """

    happening: Happening
    glimpse: Callable[[], bool]
    evidence: Callable[[], Evidence | None]


@dataclass
class _Patience:
    """How long a moment is still waited for."""

    deadline_s: float
    looked_s: float  # when the application was looked after last
    moved_s: float  # when its outputs were seen to have moved last
    end: Position  # of the outputs then
    began_s: float  # when the moment was waited for first
    waves: int = 0  # that were given beyond the first


def pause_at(trial: Trial, application: Application, moment: Moment) -> Evidence:
    """Pause instance a at a moment, and mark what was seen.

    The moment was seen, instance a was paused, and the moment was still there at a second look. A
    design that drained its input unseen is given another wave of it, a few times.

    Raises:
        MarkMissed: The moment was never seen, though outputs came all along.
        Violated: The moment was never seen, and outputs did not come; or they came outside of any
            transaction, and the moment is one of a transaction.
    """
    # Another instance will have to take over from the instance that is struck.
    trial.rig.pool(trial.manifest).prepare()
    began_s = time.monotonic()
    patience_s = trial.rig.progress_s * trial.rig.time_scale
    _, end = trial.probes.ends(application)
    patience = _Patience(began_s + patience_s, began_s, began_s, end, began_s)
    instance = application.running["a"]
    while time.monotonic() < patience.deadline_s:
        if moment.glimpse():
            pids = instance.pause()
            evidence = moment.evidence()
            if evidence:
                trial.recorder.happened(application, "a", "paused", f"{len(pids)} processes")
                trial.mark(moment.happening, processes=len(pids), **evidence)
                return evidence
            instance.resume()
        # A moment may seem to have come all along, and all is drained.
        if time.monotonic() - patience.looked_s > DRAINED_S:
            _look_after(trial, application, moment, patience)
        time.sleep(LOOK_S)
    trial.monitor.tick(application)
    _demand_transactions(trial, application, moment)
    text = moment.happening.text
    if patience.moved_s > patience.deadline_s - patience_s / 2:
        raise MarkMissed(f"{trial.manifest.name} was not seen {text} in {trial.rig.progress_s:g} s")
    raise Violated.one(
        "stuck",
        f"{trial.manifest.name} neither drained its input nor was seen {text} in "
        f"{trial.rig.progress_s:g} s",
    )


def _look_after(
    trial: Trial, application: Application, moment: Moment, patience: _Patience
) -> None:
    """Supervise an application whose moment has not come, and feed it if it has drained."""
    trial.monitor.tick(application)
    _, end = trial.probes.ends(application)
    if end != patience.end:
        if patience.moved_s == patience.began_s:
            _demand_transactions(trial, application, moment)
        patience.end = end
        patience.moved_s = patience.looked_s
    is_fed = application.input.is_fed
    if not is_fed and trial.monitor.is_drained(application, outputs_too=False):
        if patience.waves == WAVES or not application.input.totals:
            _passed_unseen(trial, application, moment)
        patience.waves += 1
        trial.workload.feed_more(application)
        patience_s = trial.rig.progress_s * trial.rig.time_scale
        patience.deadline_s = time.monotonic() + patience_s
    patience.looked_s = time.monotonic()


def _passed_unseen(trial: Trial, application: Application, moment: Moment) -> NoReturn:
    """Say that a design drained its input without the moment, unless its outputs are wrong."""
    trial.probes.observe(application)
    _demand_transactions(trial, application, moment)
    views = (view_of(each, application.name) for each in by_output(trial.history, application.name))
    if foreign := [anomaly for view in views for anomaly in view.foreign]:
        # A moment that is recognized by right outputs never comes with wrong ones.
        raise Violated(foreign)
    raise MarkMissed(
        f"{trial.manifest.name} drained its input, and was not seen {moment.happening.text}"
    )


def _demand_transactions(trial: Trial, application: Application, moment: Moment) -> None:
    """Raise Violated if a transaction is waited for, and outputs came outside of any."""
    if moment.happening in TRANSACTIONS:
        demand_transactions(trial, application)


def demand_transactions(trial: Trial, application: Application) -> None:
    """Raise Violated if outputs came outside of any transaction under exactly_once."""
    if application.mode == "exactly_once":
        trial.probes.observe(application)
        if found := outside(trial.history, application.name):
            raise Violated(found)


def transaction_open(trial: Trial, application: Application) -> Moment:
    """Return the moment when output records stay above the last stable offset.

    Their transaction is undecided. The evidence says who wrote them. If there are several outputs,
    it is the first one on which a transaction is waited for, and the evidence is of all of them.
    """
    reading = trial.reading
    topic = application.writes

    def glimpse() -> bool:
        stable, end = reading.ends(topic, application.partitions)
        return stable != end

    # The transactions of other instances, which go on, end with their commit interval.
    others_s = COMMITS * int(application.event.parameters["commit_interval_ms"]) / 1000
    decided_s = DECIDED_S + (others_s if len(application.running) > 1 else 0)

    def evidence() -> Evidence | None:
        stable, end = reading.ends(topic, application.partitions)

        def decided() -> bool:
            now, _ = reading.ends(topic, application.partitions)
            return all(now[p] > stable[p] or stable[p] == end[p] for p in stable)

        if trial.recorder.wait(decided_s, decided):
            return None
        writers = {
            (batch.producer_id, batch.producer_epoch)
            for _, batch in reading.raw.batches(topic, dict(stable))
            if batch.transactional and batch.control is None
        }
        if not writers:
            return None
        last_stable, high_watermark = with_further(reading, application, stable, end)
        return {
            "writers": sorted(writers),
            "open_records": sum(end.values()) - sum(stable.values()),
            "last_stable": last_stable,
            "high_watermark": high_watermark,
            **_open_dead_letters(trial, application),
        }

    return Moment(Happening.TRANSACTION_OPEN, glimpse, evidence)


def _open_dead_letters(trial: Trial, application: Application) -> Evidence:
    """Count the dead letters in an open transaction, if there is a topic for them."""
    if DEAD_LETTERS not in application.event.topics:
        return {}
    stable, end = trial.reading.ends(application.event.topics[DEAD_LETTERS], application.partitions)
    return {"open_dead_letters": sum(end.values()) - sum(stable.values())}


def fate_of(trial: Trial, application: Application, evidence: Evidence) -> str | None:
    """Return what became of a transaction that was seen open: `commit` or `abort`.

    It is the first marker of its writer above the last stable offset of then, if there is one.
    """
    writers = {producer_id for producer_id, _ in evidence["writers"]}
    places = (place.rpartition("-") for place in evidence["last_stable"])
    stable = {
        int(partition): evidence["last_stable"][f"{topic}-{partition}"]
        for topic, _, partition in places
        if topic == application.writes
    }
    batches = trial.reading.raw.batches(application.writes, stable)
    return next(
        (batch.control for _, batch in batches if batch.control and batch.producer_id in writers),
        None,
    )


def before_its_offsets(trial: Trial, application: Application) -> Moment:
    """Return the moment when a transaction is open and its offsets are not sent yet.

    The producer will then ask for its place in the group once more.
    """
    first = transaction_open(trial, application)

    def evidence() -> Evidence | None:
        found = first.evidence()
        pending = (
            application.progress_group is not None and trial.probes.committed(application) is None
        )
        return None if pending else found

    return Moment(first.happening, first.glimpse, evidence)


def outputs_beyond_the_commit(trial: Trial, application: Application) -> Moment:
    """Return the moment between output and commit.

    An output is visible whose input lies at or above the committed offset. If no offset says how
    far the outputs are, it is the moment when new outputs are visible.
    """
    if application.progress_group is None:
        return _new_outputs(trial, application, Happening.BETWEEN_OUTPUT_AND_COMMIT)
    visible = Visible(trial, application)

    def evidence() -> Evidence | None:
        visible.look()
        committed = trial.probes.committed(application)
        if committed is None:
            return None
        beyond: dict[str, int] = {}
        for key, count in visible.shown.items():
            for source in visible.states[key][count - 1].sources:
                place = f"{source.topic}-{source.partition}"
                if source.offset >= committed[place]:
                    beyond[place] = max(beyond.get(place, -1), source.offset)
        return {"beyond": beyond, "committed": committed} if beyond else None

    known = sum(trial.probes.ends(application)[1].values())

    def glimpse() -> bool:
        """Return whether there are new outputs.

        The commit that covers them is still to come, unless it came in this very moment.
        """
        nonlocal known
        before = known
        known = sum(trial.probes.ends(application)[1].values())
        return known > before

    return Moment(Happening.BETWEEN_OUTPUT_AND_COMMIT, glimpse, evidence)


def second_transaction_open(trial: Trial, application: Application) -> Moment:
    """Return the moment when a transaction is open beside outputs of an earlier one.

    Readers see a cut then, and not nothing.
    """
    first = transaction_open(trial, application)

    def evidence() -> Evidence | None:
        found = first.evidence()
        return found if found and any(found["last_stable"].values()) else None

    def glimpse() -> bool:
        stable, end = trial.probes.ends(application)
        return stable != end and any(stable.values())

    return Moment(Happening.SECOND_TRANSACTION_OPEN, glimpse, evidence)


def just_committed(trial: Trial, application: Application) -> Moment:
    """Return the moment when offsets were committed and nothing is open.

    The checks say whether the visible outputs are just those.

    Under exactly_once the best moment is the earliest. The broker decides the transaction while the
    design stands still, so that the design dies without knowing of its own commit. To meet that, a
    design whose transaction is open goes on in steps of one request.

    Under at_least_once a commit may come before its outputs, for a moment. Several commits are
    looked at. The first one that is ahead of the outputs is the moment to strike.

    If no offset says how far the outputs are, it is the moment when new outputs are visible.
    """
    if application.progress_group is None:
        return _new_outputs(trial, application, Happening.AFTER_COMMIT)
    commits = _Commits(trial, application)
    return Moment(Happening.AFTER_COMMIT, commits.glimpse, commits.evidence)


def _new_outputs(trial: Trial, application: Application, happening: Happening) -> Moment:
    """Return the moment when there are new outputs, and each one is visible."""
    _, known = trial.probes.ends(application)

    def glimpse() -> bool:
        stable, end = trial.probes.ends(application)
        return stable == end != known

    def evidence() -> Evidence | None:
        stable, end = trial.probes.ends(application)
        if stable != end:
            return None
        return {"outputs": sum(end.values()), "new": sum(end.values()) - sum(known.values())}

    return Moment(happening, glimpse, evidence)


class _Commits:
    """The commits of an application, one after the other."""

    def __init__(self, trial: Trial, application: Application) -> None:
        self._trial = trial
        self._application = application
        self._exactly_once = application.mode == "exactly_once"
        self._visible = Visible(trial, application)
        self._instance = application.running["a"]
        self._last: Offsets | None = None
        self._count = 0
        self._steps = STEPS  # that are left
        _, self._known = trial.probes.ends(application)

    def glimpse(self) -> bool:
        """Return whether there may be a commit since the last one."""
        # The outputs show it sooner: to ask for offsets can take a tenth of a second.
        if self._exactly_once:
            stable, end = self._trial.probes.ends(self._application)
            return end != self._known and (stable == end or self._steps > 0)
        return self._is_new(self._committed())

    def evidence(self) -> Evidence | None:
        """Return what a new commit covers, if this is the one to strike at."""
        committed = self._committed()
        unheard = not self._is_new(committed)
        while not self._is_new(committed):
            if not self._goes_on(committed):
                return None
            committed = self._committed()
        stable, end = self._trial.probes.ends(self._application)
        if stable != end:
            return None
        self._last = committed
        self._known = end
        self._count += 1
        if not self._exactly_once and self._count < COMMITS and self._is_covered(committed or {}):
            return None
        return {
            "committed": committed,
            "outputs": sum(end.values()),
            "commits": self._count,
            "unheard": unheard,
        }

    def _committed(self) -> Offsets | None:
        return self._trial.probes.committed(self._application)

    def _is_new(self, committed: Offsets | None) -> bool:
        return committed is not None and committed != self._last and any(committed.values())

    def _goes_on(self, committed: Offsets | None) -> bool:
        """Give a commit the time to come; return False if none is under way."""
        if committed is None and self._trial.recorder.wait(
            UNDER_WAY_S, lambda: self._committed() is not None
        ):
            return True
        if not self._steps or not (committed is None or self._is_open()):
            return False
        self._steps -= 1
        self._instance.step(STEP_S)
        return True

    def _is_open(self) -> bool:
        stable, end = self._trial.probes.ends(self._application)
        return stable != end

    def _is_covered(self, committed: Offsets) -> bool:
        """Return whether every state below the committed offsets is visible."""
        self._visible.look()
        return all(
            cut(committed, states) <= self._visible.shown.get(key, 0)
            for key, states in self._visible.states.items()
        )


def events_waiting(trial: Trial, application: Application) -> Moment:
    """Return the moment when the whole input is read, and not all of it is out.

    The events that wait are in the design's hands alone, or committed already.
    """
    visible = Visible(trial, application)

    def glimpse() -> bool:
        committed = None
        if application.progress != "none":
            committed = trial.probes.offsets(application)
        read = committed is not None and all(
            offset >= application.input.ends.get(place, 0) for place, offset in committed.items()
        )
        return read or trial.now_ms - application.ready_ms > READ_MS

    def evidence() -> Evidence | None:
        visible.look()
        waiting = sum(
            len(states) - visible.shown.get(key, 0) for key, states in visible.states.items()
        )
        if not waiting:
            return None
        return {"waiting": waiting, "committed": trial.probes.committed(application)}

    return Moment(Happening.EVENTS_WAITING, glimpse, evidence)


def _applied(program: Program, rows: Iterable[tuple[str, str, str]]) -> Iterator[tuple[str, int]]:
    """Yield where the last entry of each stored state of a program stands.

    It is the state's own position, because nothing feeds it from afar.
    """
    assert program.stored_value
    for stage, key, value in rows:
        if stage == program.writes:
            with suppress(Unreadable):  # a check says so; such a state stands nowhere
                applied = cast(Place, program.stored_value(key, value)[-1])
                yield f"{applied.topic}-{applied.partition}", applied.offset


def stored_before_the_commit(trial: Trial, application: Application) -> Moment:
    """Return the moment between store and commit.

    A state is in the store whose input lies at or above the committed offset. If no offset says how
    far the outputs are, it is the moment after a write to the store.
    """
    store = application.store
    assert store
    known = store.version()

    def glimpse() -> bool:
        """Return whether the design wrote to the store.

        The store is asked in a spin, because a quick design commits a millisecond later.
        """
        nonlocal known
        until = time.monotonic() + SPIN_S
        while (now := store.version()) == known and time.monotonic() < until:
            time.sleep(0)
        changed = now != known
        known = now
        return changed

    def evidence() -> Evidence | None:
        rows = store.rows()
        if application.progress_group is None:
            return {"stored": len(rows)} if rows else None
        committed = trial.probes.committed(application)
        if committed is None:
            return None
        beyond: dict[str, int] = {}
        for place, offset in _applied(application.program, rows):
            if offset >= committed.get(place, offset + 1):
                beyond[place] = max(beyond.get(place, -1), offset)
        return {"beyond": beyond, "committed": committed} if beyond else None

    return Moment(Happening.BETWEEN_STORE_AND_COMMIT, glimpse, evidence)


def between_the_stages(trial: Trial, application: Application) -> Moment:
    """Return the moment when one stage of a partition is stored further than another.

    Some designs store both at once, and say so. Their moment is between store and commit.
    """
    if "stages-at-once" in trial.manifest.capabilities:
        return stored_before_the_commit(trial, application)
    stages = application.program.stages
    store = application.store
    assert store

    def evidence() -> Evidence | None:
        rows = store.rows()
        # The last of each place.
        through = {program.writes: dict(sorted(_applied(program, rows))) for program in stages}
        first, second = through.values()
        return {"stored": through} if first != second else None

    glimpse = stored_before_the_commit(trial, application).glimpse
    return Moment(Happening.BETWEEN_STAGES, glimpse, evidence)


def leader_silent(trial: Trial, application: Application) -> Moment:
    """Return the moment when a leader of its outputs is silent, and it has gone on.

    Other nodes acknowledge their outputs meanwhile. The design goes on until it has committed
    offsets twice, or all of its input. Otherwise that takes 15 s: one that waits may commit
    nothing. The node comes back before the instance is killed, and nothing that was sent to the
    silent node is there. Later another node leads, and is given what still waits.

    The first commit may be of outputs from before the silence.

    Raises:
        HarnessError: The row runs on one broker alone.
    """
    cluster = trial.rig.broker
    if not isinstance(cluster, Cluster):
        raise HarnessError(
            "one broker alone leads everything; the sentence is for a cluster of three"
        )
    instance = application.running["a"]
    _, known = trial.probes.ends(application)

    def glimpse() -> bool:
        return trial.probes.ends(application)[1] != known

    def evidence() -> Evidence | None:
        # A commit that is on its way is none of the silence.
        trial.recorder.wait(DECIDED_S, lambda: False)
        before = trial.probes.committed(application)
        is_known = before is not None or application.progress_group is None
        if not is_known or not _has_more(application, before):
            return None
        silenced = _leader_to_silence(trial, application)
        if silenced is None:
            return None
        node, places = silenced
        commits = _Changes(before)

        def has_gone_on() -> bool:
            commits.look(trial.probes.committed(application))
            return instance.is_over or _is_done(application, commits)

        began_ms = trial.now_ms
        cluster.silence(node)
        try:
            instance.resume()
            trial.recorder.wait(SILENT_S, has_gone_on)
            silent_ms = trial.now_ms - began_ms
            said = {}
            if instance.failed:
                said["said"] = f"{instance.failed.kind}: {instance.failed.message}"
            else:
                trial.instances.demand_alive(application)
            instance.pause()
        finally:
            cluster.revive()
            trial.reading.reconnect()
        return {
            "node": node,
            "partitions": places,
            "silent_ms": silent_ms,
            "commits": commits.count,
            "committed_before": before,
            "committed": commits.last,
            **said,
        }

    return Moment(Happening.LEADER_SILENT, glimpse, evidence)


@dataclass
class _Changes:
    """The committed offsets as they were seen last, and how often they had changed."""

    last: Offsets | None
    count: int = 0

    def look(self, committed: Offsets | None) -> None:
        """Take note of offsets, if they are known."""
        if committed is not None and committed != self.last:
            self.last = committed
            self.count += 1


def _is_done(application: Application, commits: _Changes) -> bool:
    """Return whether a design has committed often enough, or has nothing left to commit."""
    is_often = commits.count >= COMMITS_IN_SILENCE
    return is_often or bool(commits.count and not _has_more(application, commits.last))


def _has_more(application: Application, committed: Offsets | None) -> bool:
    """Return whether some of the input is not committed yet, as far as offsets say so."""
    ends = application.input.ends
    return committed is None or any(committed.get(place, 0) < end for place, end in ends.items())


def _leader_to_silence(trial: Trial, application: Application) -> tuple[int, list[str]] | None:
    """Return a node and the partitions of the outputs that it leads; None if there is none.

    Others lead partitions too, and the group is coordinated elsewhere, so that offsets can be
    committed. Of several nodes it is the one that leads most.
    """
    raw = trial.reading.raw
    topic = application.writes
    leaders = raw.leaders(topic)
    led: dict[int, list[str]] = {}
    for partition, node in leaders.items():
        led.setdefault(node, []).append(f"{topic}-{partition}")
    if application.group is not None:
        led.pop(raw.coordinating_node(application.group), None)
    return max(
        ((node, places) for node, places in led.items() if len(places) < len(leaders)),
        key=lambda found: len(found[1]),
        default=None,
    )


MOMENTS: dict[str, Callable[[Trial, Application], Moment]] = {
    "between its stages": between_the_stages,
    "between store and commit": stored_before_the_commit,
    "with events waiting": events_waiting,
    "with a transaction open": transaction_open,
    "with a transaction open, before its offsets": before_its_offsets,
    "with a second transaction open": second_transaction_open,
    "between output and commit": outputs_beyond_the_commit,
    "after a commit": just_committed,
    "with a leader of its outputs silent": leader_silent,
}
