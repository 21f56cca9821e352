"""Checks of timing: every state is visible in time."""

from itertools import accumulate
from math import inf
from typing import Final, NamedTuple

from upheld.checks.needs import Need
from upheld.checks.registry import NO_STATE, OUTPUTS, check
from upheld.checks.view import Output, View, text, view_of
from upheld.history import History
from upheld.history.events import InputRested, Instance, Mark
from upheld.history.evidence import Recovery
from upheld.history.marks import Happening
from upheld.programs import State
from upheld.verdicts import Anomaly, Disturbed, Inconclusive

# The article's service level: all states but one in so many are there within so many milliseconds.
SERVED_MS: Final = 10_000
SERVED_OF: Final = 10_000
BUSY: Final = 0.25  # half a core of two: if others take it, a late output may be their fault


class Wait(NamedTuple):
    """The milliseconds that a state waited until a reader saw it.

    They are infinite if no reader did.
    """

    ms: float
    state: State


def rest(history: History, application: str) -> InputRested:
    """Return the last rest of the input.

    Raises:
        Disturbed: Kafka alone took half of the time that the rest allows.
    """
    paused = [p for p in history.of(InputRested) if p.application == application][-1]
    if 2 * paused.canary_ms > paused.tolerance_ms:
        raise Disturbed(
            f"a control record took {paused.canary_ms} ms from produce to read_committed: too "
            "slow to time others"
        )
    return paused


def timed(view: View, paused: InputRested, late: list[Anomaly]) -> list[Anomaly]:
    """Return the anomalies of outputs that are no state, and of those that are late.

    If nothing moved for long after the promised time, an output that never came is late whatever
    others took.

    Raises:
        Disturbed: An output is late, and others took the cores meanwhile.
    """
    if paused.still_ms:
        return [*view.foreign, *late]
    if paused.looked_on_ms and not view.foreign:
        after_ms = paused.looked_ms - paused.since_ms - paused.tolerance_ms
        raise Disturbed(
            f"outputs still came until {after_ms} ms after the promised time, but others took "
            f"{paused.others:.0%} of the cores meanwhile"
        )
    if late and not view.foreign and paused.others > BUSY:
        raise Disturbed(
            f"{late[0].text}, but others took {paused.others:.0%} of the cores meanwhile"
        )
    return [*view.foreign, *late]


@check(
    "promptly",
    anomalies=("late", *NO_STATE),
    needs=OUTPUTS | {Need.REST},
    by_last_value=True,
)
def promptly(history: History, application: str) -> list[Anomaly]:
    """Check that every last state before the input's rest was visible in time.

    Inconclusive if Kafka alone took half of that time, or if an output is late while others took
    the cores.
    """
    view = view_of(history, application)
    paused = rest(history, application)
    found = []
    for key, states in view.states.items():
        outputs = [o for o in view.outputs.get(key, []) if not o.anomaly]
        # What came before the furthest one may say the same of an older row.
        furthest = max(range(len(outputs)), key=lambda number: outputs[number].index, default=0)
        shown: list[Output | None] = [*outputs[furthest:]] or [None]
        if not any(view.shows(output, states[-1]) for output in shown):
            said = (
                f"{text(key)}: its last state is not visible {paused.looked_ms - paused.since_ms} "
                "ms after the input paused"
            )
            said += f" (promised: {paused.tolerance_ms} ms)"
            found.append(
                view.anomaly("late", said, key, states[-1], outputs[-1].record if outputs else None)
            )
    return timed(view, paused, found)


@check(
    "recovered",
    anomalies=("late", *NO_STATE),
    needs=OUTPUTS | {Need.REST},
    by_last_value=True,
)
def recovered(history: History, application: str) -> list[Anomaly]:
    """Check that an output was new within the promised time of a cold start (G48).

    Inconclusive as `promptly` is.
    """
    view = view_of(history, application)
    paused = rest(history, application)
    took_ms = paused.looked_ms - paused.since_ms
    mark = next(
        (m for m in reversed(list(history.of(Mark))) if m.happening is Happening.RECOVERED), None
    )
    if mark and mark.at_ms >= paused.since_ms and Recovery.of(mark).after_ms <= paused.tolerance_ms:
        return list(view.foreign)
    begun = [
        m.fault
        for m in history.of(Mark)
        if m.at_ms <= paused.since_ms and m.happening is not Happening.RECOVERED
    ]
    said = f"{took_ms} ms after “{begun[-1] if begun else 'started'}” "
    said += "the first new output came" if mark else "no new output is visible"
    return timed(
        view, paused, [Anomaly(name="late", text=f"{said} (promised: {paused.tolerance_ms} ms)")]
    )


@check(
    "available",
    anomalies=("late", *NO_STATE),
    needs=OUTPUTS | {Need.REST},
)
def available(history: History, application: str, *, of: int = SERVED_OF) -> list[Anomaly]:
    """Check that all states but one in so many were visible in time (SLA).

    A state is visible in its own output, or in a later one if outputs may skip states. It waits
    from its entry's append, or from `ready` on; a switch of clusters does not begin the wait anew.
    Inconclusive as `promptly` is, and if there are fewer states than that.

    Args:
        history: The history.
        application: The application's name.
        of: One of so many states may be late.
    """
    view = view_of(history, application)
    waits = waits_of(history, application)
    if len(waits) < of:
        raise Inconclusive(f"{len(waits)} states do not show whether one in {of} is late")
    late = [wait for wait in waits if wait.ms > SERVED_MS]
    if len(late) * of <= len(waits):
        return timed(view, rest(history, application), [])
    said = f"{len(late)} of {len(waits)} states were later than {SERVED_MS} ms"
    found = []
    for wait in late:
        state = wait.state
        how = f"was visible {wait.ms} ms after" if wait.ms < inf else "is not visible since"
        found.append(
            view.anomaly(
                "late", f"{text(state.key)} {how} {state.source.at} ({said})", state.key, state
            )
        )
    return timed(view, rest(history, application), found)


def waits_of(history: History, application: str) -> list[Wait]:
    """Return how long each state waited until it was visible.

    A later state of its key counts as well, if outputs may skip states. A wait begins at the append
    of the state's entry, or at the first `ready`. A state that no reader saw waits without end.
    """
    view = view_of(history, application)
    waits = list[Wait]()
    ready_ms = next(
        (
            e.at_ms
            for e in history.of(Instance)
            if (e.application, e.event) == (application, "ready")
        ),
        0,
    )
    for key, states in view.states.items():
        shown_ms = [inf] * len(states)
        for output in view.outputs.get(key, []):
            if not output.anomaly:
                shown_ms[output.index] = min(shown_ms[output.index], output.record.seen_ms)
        by_ms = [*accumulate(reversed(shown_ms), min)][::-1] if view.conflates else shown_ms
        waits += [
            Wait(max(0, at_ms - max(state.source.seen_ms, ready_ms)), state)
            for state, at_ms in zip(states, by_ms, strict=True)
        ]
    return waits
