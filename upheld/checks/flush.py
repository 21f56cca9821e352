"""Did batches go out full at once, in time where they are not full, and never early?"""

from collections.abc import Iterator
from itertools import groupby, pairwise

from upheld.checks.delivery import rest, timed
from upheld.checks.registry import NO_STATE, check
from upheld.checks.view import View, text, view_of
from upheld.history import History
from upheld.history.events import Instance, Record
from upheld.programs import State
from upheld.verdicts import Anomaly

Batch = tuple[Record, int]  # the output, and how many events it holds


def _batches(view: View) -> Iterator[tuple[bytes, list[Batch]]]:
    """Every customer's batches, in the order of the log."""
    for key, outputs in view.outputs.items():
        each = (list(same) for _, same in groupby(outputs, key=lambda o: id(o.record)))
        yield key, [(same[0].record, len(same)) for same in each]


def _parameter(view: View, name: str) -> int:
    return int(view.application.parameters[name])


@check("filled", anomalies=("late", "early", *NO_STATE))
def filled(history: History, application: str) -> list[Anomaly]:
    """Whether, at the pause, just the full batches are out: none waits for the clock, and nothing
    goes out before its time.
    """
    view, paused, late = view_of(history, application), rest(history, application), []
    threshold = _parameter(view, "threshold")
    for key, states in view.states.items():
        due = len(states) - len(states) % threshold
        out = 1 + max((o.index for o in view.outputs.get(key, ())), default=-1)
        if out < due:
            said = (
                f"{text(key)} has {len(states)} events, {out} of them are out "
                f"{paused.looked_ms - paused.since_ms} ms after"
            )
            late.append(
                view.anomaly(
                    "late",
                    f"{said} the input paused, and {due} fill batches of {threshold}",
                    key,
                    states[due - 1],
                )
            )
    early = [
        view.anomaly(
            "early",
            f"{text(key)} has a batch of {size} after {paused.looked_ms} ms, before threshold and "
            "interval",
            key,
            got=record,
        )
        for key, batches in _batches(view)
        for record, size in batches
        if size < threshold
    ]
    return timed(view, paused, late) + early


@check("in-time", anomalies=("late", *NO_STATE))
def in_time(history: History, application: str) -> list[Anomaly]:
    """Whether no event waited longer than the tolerance, which the interval is a part of.

    It waits from the later of append and `ready`, until a read_committed reader has it.
    """
    view, paused, late = view_of(history, application), rest(history, application), []
    ready = _ready(history, application)
    for key, states in view.states.items():
        seen = {o.index: o.record.seen_ms for o in reversed(view.outputs.get(key, []))}
        for index, state in enumerate(states):
            until = seen.get(index, paused.looked_ms)
            since = _waits_since(state, ready, until)
            if until - since > paused.tolerance_ms or (
                index not in seen and paused.looked_ms - since >= paused.tolerance_ms
            ):
                said = f"{text(key)}: {state.source.at} waited {until - since} ms" + (
                    "" if index in seen else " and waits yet"
                )
                late.append(
                    view.anomaly("late", f"{said} (promised: {paused.tolerance_ms} ms)", key, state)
                )
    return timed(view, paused, late)


def _ready(history: History, application: str) -> list[int]:
    return [
        e.at_ms for e in history.of(Instance) if e.application == application and e.event == "ready"
    ]


def _waits_since(state: State, ready: list[int], until_ms: int) -> int:
    return max([state.source.seen_ms, *(at for at in ready if at <= until_ms)])


@check("bounded", anomalies=("late", "early", *NO_STATE))
def bounded(history: History, application: str) -> list[Anomaly]:
    """Whether no batch is over the threshold, and none below it goes out when neither clock says
    so.

    A batch may wait from its first event on, or go with all others once in an interval: neither its
    event nor the batch before it is then that new. How far batches are apart the broker says, which
    stamps what is appended. What closes an instance may follow at once; a quarter of the interval
    is left to jitter.
    """
    view, found, ready = view_of(history, application), [], _ready(history, application)
    threshold, interval_ms = _parameter(view, "threshold"), _parameter(view, "interval_ms")
    lives = {id(record): life for record, life in _lives(history, application)}
    for key, batches in _batches(view):
        first = {id(o.record): o.index for o in reversed(view.outputs[key]) if not o.anomaly}
        for record, size in batches:
            if size > threshold:
                said = (
                    f"{text(key)} has a batch of {size}, whose first {threshold} had to go out "
                    "before the next came"
                )
                found.append(view.anomaly("late", said, key, got=record))
        for (before, size_before), (after, size_after) in pairwise(batches):
            apart_ms = after.timestamp_ms - before.timestamp_ms
            if (
                max(size_before, size_after) >= threshold
                or 4 * apart_ms >= 3 * interval_ms
                or lives[id(before)] != lives[id(after)]
            ):
                continue
            waited_ms = 0
            if (index := first.get(id(after))) is not None:
                state = view.states[key][index]
                waited_ms = after.seen_ms - _waits_since(state, ready, after.seen_ms)
            if 4 * waited_ms < 3 * interval_ms:
                said = (
                    f"{text(key)}: a batch of {size_after} follows one of {size_before} after "
                    f"{apart_ms} of {interval_ms} ms"
                )
                found.append(
                    view.anomaly("early", f"{said}; it waited {waited_ms} ms", key, got=after)
                )
    return view.foreign + found


def _lives(history: History, application: str) -> Iterator[tuple[Record, int]]:
    """Every record with the number of starts, stops and kills before it was seen: what a close
    sends is seen after the stop.
    """
    life = 0
    for event in history.events:
        if isinstance(event, Instance):
            life += event.application == application and event.event != "ready"
        elif isinstance(event, Record):
            yield event, life
