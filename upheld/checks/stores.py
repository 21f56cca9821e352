"""Checks of stores: the state in the store is the latest, and there in time.

It is there before the commit, and is not written too often.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from upheld.checks.delivery import cut, known
from upheld.checks.needs import Need
from upheld.checks.registry import NO_STATE, OUTPUTS, check
from upheld.checks.timing import rest, timed
from upheld.checks.view import View, show, text, view_of
from upheld.history import History
from upheld.history.events import Committed, Instance, Memory, Stored
from upheld.programs import State, Unreadable, Value
from upheld.verdicts import Anomaly, Inconclusive

GROWTH_BYTES = 32 << 20  # a Java heap moves by a third of it within five seconds

Row = tuple[str, str, str]  # stage, key, value: as the history has it


class Unsettled(NamedTuple):
    """A key whose last state is not in the store, and the words for what is."""

    key: bytes
    due: State
    kept: str


class _Kept(NamedTuple):
    """The states of a key, and the value that the store has of it."""

    key: bytes
    states: list[State]
    value: Value | None


def unsettled(view: View, rows: Iterable[Row]) -> list[Unsettled]:
    """Return the keys whose last state is not the one in the store."""
    return [
        Unsettled(kept.key, kept.states[-1], "nothing" if kept.value is None else show(kept.value))
        for kept in _kept(view, rows)
        if kept.value != kept.states[-1].value
    ]


def _kept(view: View, rows: Iterable[Row]) -> Iterator[_Kept]:
    """Go through the keys of each stage; a value that is no row says so in its place."""
    said = {(stage, key.encode()): value for stage, key, value in rows}
    for stage in view.stages:
        stored_value = stage.program.stored_value
        name = stage.program.writes
        assert stored_value
        for key, states in stage.states.items():
            value = said.get((name, key))
            try:
                yield _Kept(key, states, None if value is None else stored_value(text(key), value))
            except Unreadable as error:
                yield _Kept(key, states, (error.why,))


@check(
    "stored",
    anomalies=("late", *NO_STATE),
    needs=OUTPUTS | {Need.REST, Need.STORE},
)
def stored(history: History, application: str) -> list[Anomaly]:
    """Check that every last state before the input's rest was stored in time (G4).

    Inconclusive as `promptly` is.
    """
    view = view_of(history, application)
    paused = rest(history, application)
    last = [s for s in history.of(Stored) if s.application == application][-1]
    found = []
    for key, due, have in unsettled(view, last.rows):
        said = (
            f"{text(key)}: {paused.looked_ms - paused.since_ms} ms after the input paused the "
            f"store holds {have}"
        )
        found.append(
            view.anomaly(
                "late", f"{said}, not its last state (promised: {paused.tolerance_ms} ms)", key, due
            )
        )
    return timed(view, paused, found)


@check(
    "stored-first",
    anomalies=("behind-commit", *NO_STATE),
    needs=OUTPUTS | {Need.COMMIT, Need.STORE},
)
def stored_first(history: History, application: str) -> list[Anomaly]:
    """Check that the store holds every committed state, or a later one (G5).

    Committed are the states below the committed offsets.

    The commit is known from before the look at the store, or nothing ran in between.
    """
    view = view_of(history, application)
    committed = [c for c in history.of(Committed) if c.application == application][-1]
    rows = [s for s in history.of(Stored) if s.application == application][-1].rows
    found = list(view.foreign)
    for key, states, have in _kept(view, rows):
        want = cut(known(committed), states)
        place = next((number for number, state in enumerate(states, 1) if state.value == have), 0)
        if have is not None and not place:
            said = f"{text(key)}: the store holds {show(have)}, which no fold of the input gives"
            found.append(view.anomaly("phantom", said, key, states[want - 1] if want else None))
        elif place < want:
            said = (
                f"{text(key)}: the group has committed {want} entries of it, and the store holds "
                f"{place}"
            )
            found.append(view.anomaly("behind-commit", said, key, states[want - 1]))
    return found


@check(
    "contained",
    anomalies=("unbounded",),
    needs={Need.START, Need.MARK, Need.MEMORY},
)
def contained(history: History, application: str) -> list[Anomaly]:
    """Check that memory has hardly grown from before an outage to its end (G5, G49)."""
    before, *_, after = [m.size_bytes for m in history.of(Memory) if m.application == application]
    if (grown := after - before) <= GROWTH_BYTES:
        return []
    said = (
        f"it had {before >> 20} MiB in memory, and {grown >> 20} MiB more at the end of the outage"
    )
    most = f"{GROWTH_BYTES >> 20} MiB more at most"
    return [Anomaly(name="unbounded", text=said, expected=most, got=f"{grown >> 20} MiB more")]


@check(
    "throttled",
    anomalies=("early", *NO_STATE),
    needs=OUTPUTS | {Need.STORE},
)
def throttled(history: History, application: str) -> list[Anomaly]:
    """Check that no key was written more often than once an interval (G4).

    This holds in an instance's life, except for its closing write. Inconclusive if no key changed
    more often than it may be written: then no write had to be held back.
    """
    view = view_of(history, application)
    interval_ms = int(view.application.parameters["persistence_interval_ms"])
    lives = [e for e in history.of(Instance) if e.application == application]
    looks = [s for s in history.of(Stored) if s.application == application]
    writes = [w for look in looks for w in look.writes]
    until_ms = looks[-1].at_ms
    found = list(view.foreign)
    at_stake = False
    starts = [e for e in lives if e.event == "started"]
    for start in starts:
        end = next(
            (
                e
                for e in lives
                if e.at_ms > start.at_ms and e.event in {"stopped", "killed", "failed"}
            ),
            None,
        )
        end_ms = end.at_ms if end else until_ms
        may = (
            (end_ms - start.at_ms) // interval_ms + 1 + (end is not None and end.event == "stopped")
        )
        counts = Counter(key for at_ms, _, key in writes if start.at_ms <= at_ms <= end_ms)
        at_stake = at_stake or any(len(states) > may for states in view.states.values())
        for key, count in sorted(counts.items()):
            if count > may:
                said = (
                    f"{key} was written {count} times in {end_ms - start.at_ms} ms; {may} times "
                    "at most"
                )
                found.append(view.anomaly("early", said, key.encode()))
    if not at_stake:
        raise Inconclusive(
            "no account changed more often than it may be written, so nothing had to be held back"
        )
    return found
