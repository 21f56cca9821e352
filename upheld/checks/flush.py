"""Checks of batches: they go out full at once, or in time, and never early."""

from collections.abc import Iterator
from itertools import groupby, pairwise

from upheld.checks.needs import Need
from upheld.checks.registry import NO_STATE, OUTPUTS, check
from upheld.checks.timing import rest, timed
from upheld.checks.view import View, text, view_of
from upheld.history import History
from upheld.history.events import Instance, Record
from upheld.programs import State
from upheld.verdicts import Anomaly

Batch = tuple[Record, int]  # an output, and the number of its events


def _batches(view: View) -> Iterator[tuple[bytes, list[Batch]]]:
    """Go through the customers, each with its batches in the order of the log."""
    for key, outputs in view.outputs.items():
        each = (list(same) for _, same in groupby(outputs, key=lambda o: id(o.record)))
        yield key, [(same[0].record, len(same)) for same in each]


def _parameter(view: View, name: str) -> int:
    return int(view.application.parameters[name])


@check(
    "filled",
    anomalies=("late", "early", *NO_STATE),
    needs=OUTPUTS | {Need.REST},
)
def filled(history: History, application: str) -> list[Anomaly]:
    """Check that, at the rest of the input, just the full batches are out.

    No full batch waits for the clock, and no other batch goes out before its time.
    """
    view = view_of(history, application)
    paused = rest(history, application)
    late = []
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


@check(
    "in-time",
    anomalies=("late", *NO_STATE),
    needs=OUTPUTS | {Need.REST},
)
def in_time(history: History, application: str) -> list[Anomaly]:
    """Check that no event waited longer than the tolerance.

    The interval is a part of it. An event waits from the later of append and `ready`, until a
    read_committed reader has it.
    """
    view = view_of(history, application)
    paused = rest(history, application)
    late = []
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


@check(
    "bounded",
    anomalies=("late", "early", *NO_STATE),
    needs=OUTPUTS,
)
def bounded(history: History, application: str) -> list[Anomaly]:
    """Check that no batch is over the threshold, and none below it is early.

    A batch below it goes out when one of two clocks says so. It may wait from its first event on,
    or go with all others once in an interval. It is early if neither its event nor the batch before
    it is that old. The broker stamps appended records, and so says how far batches are apart. The
    batches that close an instance may follow at once. A quarter of the interval is left to jitter.
    """
    view = view_of(history, application)
    found = []
    ready = _ready(history, application)
    threshold = _parameter(view, "threshold")
    interval_ms = _parameter(view, "interval_ms")
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
    """Go through the records, each with the number of its life.

    That is the number of starts, stops and kills before it was seen. The batches of a close are
    seen after the stop.
    """
    life = 0
    for event in history.events:
        if isinstance(event, Instance):
            life += event.application == application and event.event != "ready"
        elif isinstance(event, Record):
            yield event, life
