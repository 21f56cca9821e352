"""Faults that are aimed from outside: look until the moment has come, hold everything still, look
again, then strike.

No design is asked to help. Every hit leaves a mark with what was seen; a design that passed its
whole input without giving the moment raises MarkMissed, and the scenario is tried again.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from upheld.checks.delivery import cut
from upheld.checks.view import view_of
from upheld.history.events import Offsets
from upheld.history.marks import Happening
from upheld.kafka.consumers import Position
from upheld.programs import DEAD_LETTERS, Place, Program, States, Unreadable
from upheld.trial.application import Application
from upheld.trial.trial import Trial
from upheld.verdicts import MarkMissed, NotOffered, Violated

Evidence = dict[str, Any]
WAVES = 3  # how often more input is given to a design that passed the moment unseen
# How often it is asked whether the moment has passed for good: to ask can take a tenth of a second.
DRAINED_S = 0.5
COMMITS = 3  # how many commits are looked at where one may come before its outputs
DECIDED_S = 0.1  # a commit that was on its way is through by then, though its producer stands still
UNDER_WAY_S = 0.03  # a commit that was asked for is through by then
# Long enough for one answer to be heard and one more request to be sent; a second or two in all.
STEP_S, STEPS = (
    0.001,
    300,
)
READ_MS = 3_000  # a design that commits no more than it has sent on has read a small input by then
SPIN_S = 0.02  # how long one glimpse at a store lasts
LOOK_S = 0.004  # a small batch's transaction is open for some 20 ms; each look costs the broker and us a millisecond


@dataclass(frozen=True)
class Aim:
    """A moment to strike at: ``glimpse`` is quick and asked all the time, ``evidence`` is asked
    when all stands still.
    """

    happening: Happening
    glimpse: Callable[[], bool]
    evidence: Callable[[], Evidence | None]


def hold(trial: Trial, application: Application, aim: Aim) -> Evidence:
    """Pause instance a at the moment: seen, paused, and still so when looked at again.

    The mark says what was seen.

    A design that drained its input unseen is given another wave of it, a few times. MarkMissed
    where it was never seen, though outputs came all along; Violated where they did not.
    """
    trial.rig.pool(
        trial.manifest
    ).prepare()  # somebody will have to take over from the instance that is struck
    waves, looked = 0, time.monotonic()
    patience_s = trial.rig.progress_s * trial.rig.time_scale
    deadline, moved, (_, end) = looked + patience_s, looked, trial.probes.ends(application)
    instance = application.running["a"]
    while time.monotonic() < deadline:
        if aim.glimpse():
            pids = instance.pause()
            evidence = aim.evidence()
            if evidence:
                trial.recorder.happened(application, "a", "paused", f"{len(pids)} processes")
                trial.mark(aim.happening, processes=len(pids), **evidence)
                return evidence
            instance.resume()
        elif time.monotonic() - looked > DRAINED_S:
            trial.monitor.tick(application)
            if (now := trial.probes.ends(application)[1]) != end:
                end, moved = now, looked
            if not application.input.is_fed and trial.monitor.is_drained(
                application, outputs_too=False
            ):
                if waves == WAVES or not application.input.totals:
                    trial.probes.observe(application)
                    if foreign := view_of(trial.history, application.name).foreign:
                        # A moment that is told by right outputs never comes with wrong ones.
                        raise Violated(foreign)
                    raise MarkMissed(
                        f"{trial.manifest.name} drained its input, and was not seen {aim.happening.text}"
                    )
                waves += 1
                trial.workload.feed_more(application)
                deadline = time.monotonic() + patience_s
            looked = time.monotonic()
        time.sleep(LOOK_S)
    trial.monitor.tick(application)
    if moved > deadline - patience_s / 2:
        raise MarkMissed(
            f"{trial.manifest.name} was not seen {aim.happening.text} in {trial.rig.progress_s:g} s"
        )
    raise Violated.one(
        "stuck",
        f"{trial.manifest.name} neither drained its input nor was seen {aim.happening.text} in "
        f"{trial.rig.progress_s:g} s",
    )


def _demand_group(trial: Trial, application: Application) -> None:
    if application.group is None:
        raise NotOffered(
            f"{trial.manifest.name} names no consumer group, so nobody can see when it commits"
        )


def transaction_open(trial: Trial, application: Application) -> Aim:
    """Output records stand above the last stable offset, and stay there: their transaction is
    undecided.

    Evidence: who wrote them.
    """
    reading, topic = trial.reading, application.writes

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
        return {
            "writers": sorted(writers),
            "open_records": sum(end.values()) - sum(stable.values()),
            "last_stable": {f"{topic}-{p}": o for p, o in stable.items()},
            "high_watermark": {f"{topic}-{p}": o for p, o in end.items()},
            **_open_letters(trial, application),
        }

    return Aim(Happening.TRANSACTION_OPEN, glimpse, evidence)


def _open_letters(trial: Trial, application: Application) -> Evidence:
    """How many dead letters are in an open transaction, where there is a topic for them."""
    if DEAD_LETTERS not in application.event.topics:
        return {}
    stable, end = trial.reading.ends(application.event.topics[DEAD_LETTERS], application.partitions)
    return {"open_dead_letters": sum(end.values()) - sum(stable.values())}


def before_its_offsets(trial: Trial, application: Application) -> Aim:
    """A transaction is open and its offsets are still to be sent, so that its place in the group is
    asked for once more.
    """
    first = transaction_open(trial, application)

    def evidence() -> Evidence | None:
        found = first.evidence()
        pending = application.group is not None and trial.probes.committed(application) is None
        return None if pending else found

    return Aim(first.happening, first.glimpse, evidence)


def outputs_beyond_the_commit(trial: Trial, application: Application) -> Aim:
    """An output is visible whose input lies at or above the committed offset: between output and
    commit.
    """
    _demand_group(trial, application)
    visible = _Visible(trial, application)

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
        """New outputs: the commit that covers them is still to come, unless it came in this very
        moment.
        """
        nonlocal known
        before, known = known, sum(trial.probes.ends(application)[1].values())
        return known > before

    return Aim(Happening.BETWEEN_OUTPUT_AND_COMMIT, glimpse, evidence)


def second_transaction_open(trial: Trial, application: Application) -> Aim:
    """A transaction is open and outputs of an earlier one are visible: readers see a cut, and not
    nothing.
    """
    first = transaction_open(trial, application)

    def evidence() -> Evidence | None:
        found = first.evidence()
        return found if found and any(found["last_stable"].values()) else None

    def glimpse() -> bool:
        stable, end = trial.probes.ends(application)
        return stable != end and any(stable.values())

    return Aim(Happening.SECOND_TRANSACTION_OPEN, glimpse, evidence)


def just_committed(trial: Trial, application: Application) -> Aim:
    """Offsets were committed and nothing is open.

    Whether the visible outputs are just those is for the checks to say.

    Under exactly_once the best moment is the earliest: the broker decides the transaction while the
    design stands still, so that it dies without having heard of its own commit. To meet that, a
    design whose transaction is open goes on in steps of one request. Under at_least_once a commit
    may come before its outputs, for a moment: several commits are looked at, and the first one that
    is ahead of the outputs is the moment to strike.
    """
    _demand_group(trial, application)
    exactly_once = application.mode == "exactly_once"
    visible, instance = _Visible(trial, application), application.running["a"]
    last: Offsets | None = None
    commits, steps = 0, STEPS
    _, known = trial.probes.ends(application)

    def is_open() -> bool:
        stable, end = trial.probes.ends(application)
        return stable != end

    def glimpse() -> bool:
        # The outputs tell it sooner: to ask for offsets can take a tenth of a second.
        if exactly_once:
            stable, end = trial.probes.ends(application)
            return end != known and (stable == end or steps > 0)
        committed = trial.probes.committed(application)
        return committed is not None and committed != last and any(committed.values())

    def evidence() -> Evidence | None:
        nonlocal last, known, commits, steps
        unheard = False
        while (committed := trial.probes.committed(application)) in (None, last) or not any(
            (committed or {}).values()
        ):
            unheard = True
            if committed is None and trial.recorder.wait(
                UNDER_WAY_S, lambda: trial.probes.committed(application) is not None
            ):
                continue
            if not steps or not (committed is None or is_open()):
                return None
            steps -= 1
            instance.step(STEP_S)
        stable, end = trial.probes.ends(application)
        if stable != end:
            return None
        last, known, commits = committed, end, commits + 1
        if not exactly_once and commits < COMMITS:
            visible.look()
            if all(
                cut(committed or {}, states) <= visible.shown.get(key, 0)
                for key, states in visible.states.items()
            ):
                return None
        return {
            "committed": committed,
            "outputs": sum(end.values()),
            "commits": commits,
            "unheard": unheard,
        }

    return Aim(Happening.AFTER_COMMIT, glimpse, evidence)


def events_waiting(trial: Trial, application: Application) -> Aim:
    """The whole input is read, and not all of it is out: what waits is in the design's hands alone,
    or committed already.
    """
    visible = _Visible(trial, application)

    def glimpse() -> bool:
        committed = trial.probes.committed(application) if application.group else None
        read = committed is not None and all(
            o >= application.input.ends.get(p, 0) for p, o in committed.items()
        )
        return read or trial.now_ms - application.ready_ms > READ_MS

    def evidence() -> Evidence | None:
        visible.look()
        waiting = sum(
            len(states) - visible.shown.get(key, 0) for key, states in visible.states.items()
        )
        return (
            {"waiting": waiting, "committed": trial.probes.committed(application)}
            if waiting
            else None
        )

    return Aim(Happening.EVENTS_WAITING, glimpse, evidence)


def _applied(program: Program, rows: Iterable[tuple[str, str, str]]) -> Iterator[tuple[str, int]]:
    """Where the last entry of each stored state of a program stands: its own position, because
    nothing feeds it from afar.
    """
    assert program.stored_value
    for stage, key, value in rows:
        if stage == program.writes:
            applied = cast(Place, program.stored_value(key, value)[-1])
            yield f"{applied.topic}-{applied.partition}", applied.offset


def stored_before_the_commit(trial: Trial, application: Application) -> Aim:
    """A state is in the store whose input lies at or above the committed offset: between store and
    commit.
    """
    _demand_group(trial, application)
    store = application.store
    assert store
    known = store.version()

    def glimpse() -> bool:
        """Somebody wrote to the store; asked in a spin, because a quick design commits a
        millisecond later.
        """
        nonlocal known
        until = time.monotonic() + SPIN_S
        while (now := store.version()) == known and time.monotonic() < until:
            time.sleep(0)
        changed, known = now != known, now
        return changed

    def evidence() -> Evidence | None:
        committed = trial.probes.committed(application)
        if committed is None:
            return None
        beyond: dict[str, int] = {}
        for place, offset in _applied(application.program, store.rows()):
            if offset >= committed.get(place, offset + 1):
                beyond[place] = max(beyond.get(place, -1), offset)
        return {"beyond": beyond, "committed": committed} if beyond else None

    return Aim(Happening.BETWEEN_STORE_AND_COMMIT, glimpse, evidence)


def between_the_stages(trial: Trial, application: Application) -> Aim:
    """One stage of an entry's partition is stored further than the other: between them.

    Some store both at once, and say so.
    """
    if "stages-at-once" in trial.manifest.capabilities:
        return stored_before_the_commit(trial, application)
    stages, store = application.program.stages, application.store
    assert store

    def evidence() -> Evidence | None:
        rows = store.rows()
        # The last of each place.
        through = {program.writes: dict(sorted(_applied(program, rows))) for program in stages}
        first, second = through.values()
        return {"stored": through} if first != second else None

    return Aim(
        Happening.BETWEEN_STAGES, stored_before_the_commit(trial, application).glimpse, evidence
    )


AIMS = {
    "between its stages": between_the_stages,
    "between store and commit": stored_before_the_commit,
    "with events waiting": events_waiting,
    "with a transaction open": transaction_open,
    "with a transaction open, before its offsets": before_its_offsets,
    "with a second transaction open": second_transaction_open,
    "between output and commit": outputs_beyond_the_commit,
    "after a commit": just_committed,
}


class _Visible:
    """The visible outputs, placed among the model's states; asked again and again while a design
    runs.
    """

    def __init__(self, trial: Trial, application: Application) -> None:
        self._trial, self._application = trial, application
        self._position: Position = dict.fromkeys(range(application.partitions), 0)
        # Of each output: its key, and the states that it shows.
        self._items: list[tuple[bytes, list[Any]]] = []
        # key and state -> which of the key's states it is, from 1
        self._places: dict[tuple[bytes, Any], int] = {}
        self.states: States = {}
        self.shown: dict[bytes, int] = {}  # key -> how many of its states came out

    def look(self) -> None:
        """Read what is new, and place it among the states; all of it anew where there are other
        states.
        """
        trial, application = self._trial, self._application
        new = list(
            self._read(trial.reading.records(application.writes, self._position, committed=True))
        )
        self._items += new
        states = view_of(trial.history, application.name).states
        if states is not self.states:
            self.states, self.shown, new = states, {}, self._items
            self._places = {}
            for key, each in states.items():
                for number, state in enumerate(each, 1):
                    self._places.setdefault((key, state.value), number)
        for key, items in new:
            count = max(self._places.get((key, value), 0) for value in items)
            if count > self.shown.get(key, 0):
                self.shown[key] = count

    def _read(self, messages: Iterable[Any]) -> Iterator[tuple[bytes, list[Any]]]:
        program = self._application.program
        for message in messages:
            try:
                items = program.items(program.value_of(_Raw(message)))  # type: ignore[arg-type]
            except Unreadable:
                continue  # the checks will name it
            yield message.key(), items


class _Raw:
    """A client's message under the names of a history record."""

    def __init__(self, message: Any) -> None:
        self.key, self.value = message.key(), message.value()
        self.at = f"{message.topic()}-{message.partition()}@{message.offset()}"
