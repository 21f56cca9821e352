"""Was every input's effect delivered, as often as the mode allows, in order, whole and in time?"""

from collections import Counter
from itertools import accumulate, pairwise
from math import inf

from upheld.checks.merged import cut_off, progressed
from upheld.checks.registry import NO_STATE, RELATION, check
from upheld.checks.view import Output, View, show, text, view_of
from upheld.history import History
from upheld.history.events import Batch, Committed, Instance, Mark, Paused, Record
from upheld.history.marks import Happening
from upheld.programs import GONE, NOTHING, State
from upheld.verdicts import Anomaly, Inconclusive, NotOffered

# All but one in so many are there in time: the article's service level.
SERVED_MS, SERVED_OF = (
    10_000,
    10_000,
)
BUSY = 0.25  # others took half a core of two: what is late then may be their fault


@check("relation", anomalies=RELATION)
def relation(history: History, application: str) -> list[Anomaly]:
    """Whether the drained outputs are the model's states, per key.

    exactly_once: in order, none twice, the last one last. at_least_once: an output may be repeated,
    and after each new start the key may step back once (what was sent before the crash was not yet
    committed), never before it; the last one is still the last. A program that does not conflate
    skips none. Each stage is judged by itself.
    """
    view = view_of(history, application)
    if view.merged:
        return view.foreign + progressed(view)
    found = []
    for stage in view.stages:
        found += stage.foreign
        for key, states in stage.states.items():
            found += _order(
                stage, key, states, [o for o in stage.outputs.get(key, []) if not o.anomaly]
            )
    return found


def _order(view: View, key: bytes, states: list[State], outputs: list[Output]) -> list[Anomaly]:
    if not outputs:
        said = f"{text(key)} has {len(states)} states and no visible output"
        return [] if view.shows(None, states[-1]) else [view.anomaly("lost", said, key, states[-1])]
    found = []
    steps_back = 0
    if len({o.record.partition for o in outputs}) > 1:
        found.append(
            view.anomaly(
                "reordered", f"{text(key)} lies in more than one partition, so it has no order", key
            )
        )
    seen, ever = {outputs[0].index}, {o.index for o in outputs}
    if not view.program.conflates and outputs[0].index > 0:
        said = f"{text(key)} begins with its output {outputs[0].index + 1}, not with its first"
        found.append(
            view.anomaly(
                "reordered" if 0 in ever else "lost", said, key, states[0], outputs[0].record
            )
        )
    for before, after in pairwise(outputs):
        state = states[after.index]
        if after.index <= before.index:
            repeated = after.index in seen
            if view.exactly_once:
                said = f"{text(key)} shows {show(state.value)} " + (
                    "again" if repeated else f"after {show(states[before.index].value)}"
                )
                name = "duplicated" if repeated else _backwards(view, states[before.index])
                found.append(view.anomaly(name, said, key, state, after.record))
            elif after.index < before.index:
                steps_back += 1
                if steps_back > after.interruptions:
                    said = (
                        f"{text(key)} steps back to {show(state.value)} with no crash or "
                        "rebalance to allow it"
                    )
                    found.append(
                        view.anomaly(
                            _backwards(view, states[before.index]), said, key, state, after.record
                        )
                    )
        elif not view.program.conflates and after.index > before.index + 1:
            skipped = range(before.index + 1, after.index)
            # Never came, or only elsewhere.
            missing = next((index for index in skipped if index not in ever), None)
            said = f"{text(key)} skips {len(skipped)} outputs after {before.record.at}"
            due = states[before.index + 1 if missing is None else missing]
            found.append(
                view.anomaly(
                    "reordered" if missing is None else "lost", said, key, due, after.record
                )
            )
        seen.add(after.index)
    if not view.shows(outputs[-1], states[-1]):
        said = f"{text(key)} ends at {show(states[outputs[-1].index].value)}, not at its last state"
        overwritten = view.program.beside and not found and _came(outputs, states, len(states))
        name = _backwards(view, states[-1]) if overwritten else "lost"
        found.append(view.anomaly(name, said, key, states[-1], outputs[-1].record))
    return found


def _came(outputs: list[Output], states: list[State], want: int) -> bool:
    """Whether the last of so many states was shown, or a later one, or one of its row that a result
    of another row follows.
    """
    due, ends = states[want - 1].source, states[outputs[-1].index].source if outputs else None
    return any(o.index >= want - 1 or (states[o.index].source is due is not ends) for o in outputs)


def _backwards(view: View, before: State) -> str:
    """What it is to step back behind this state: of a join, a result that was overwritten or
    deleted comes back.
    """
    if not view.program.beside:
        return "reordered"
    return "resurrected" if before.value == GONE else "stale-overwrite"


def known(committed: Committed) -> dict[str, int]:
    """The committed offsets; a design that names no group is not judged by a rule that needs
    them.
    """
    if committed.offsets is None:
        raise NotOffered("the design names no consumer group, so its committed input is not known")
    return committed.offsets


def cut(offsets: dict[str, int], states: list[State]) -> int:
    """How many of a key's states there are up to the last one that comes from below the committed
    offsets.
    """
    below = (
        all(s.offset < offsets.get(f"{s.topic}-{s.partition}", 0) for s in state.sources)
        for state in states
    )
    return max((number for number, is_below in enumerate(below, 1) if is_below), default=0)


@check(
    "fold",
    anomalies=("ahead-of-commit", "behind-commit", "stale-overwrite", "resurrected", *NO_STATE),
)
def fold(history: History, application: str) -> list[Anomaly]:
    """The prefix rule: with every instance down, are the visible outputs the fold of the committed
    input?

    exactly_once: the last visible output of each key equals the fold. at_least_once (and under
    exactly_once a design that is atomic per shard, until its restart): it equals it or a later
    state, because outputs come before the commit. A program that does not conflate shows everything
    below the commit, unless it holds back what it has read.
    """
    view = view_of(history, application)
    committed = [c for c in history.of(Committed) if c.application == application and c.down][-1]
    may_lead = not view.exactly_once or history.begun.atomic == "shard"
    found = list(view.foreign)
    if view.merged:
        return found + cut_off(view, known(committed), may_lead=may_lead)
    for key, states in view.states.items():
        outputs = [o for o in view.outputs.get(key, []) if not o.anomaly]
        have, want = (outputs[-1].index + 1 if outputs else 0), cut(known(committed), states)
        if view.program.beside and _is_due(
            view, outputs[-1] if outputs else None, states, want, may_lead=may_lead
        ):
            continue
        waits = view.program.holds_back
        missing = (
            set()
            if view.program.conflates or waits
            else set(range(want)) - {o.index for o in outputs}
        )
        if have < want and not waits:
            said = (
                f"{text(key)}: the group has committed {want} entries of it, and the visible "
                f"output holds {have}"
            )
            overwritten = view.program.beside and _came(outputs, states, want)
            name = _backwards(view, states[want - 1]) if overwritten else "behind-commit"
            found.append(
                view.anomaly(
                    name, said, key, states[want - 1], outputs[-1].record if outputs else None
                )
            )
        elif have > want and not may_lead:
            said = (
                f"{text(key)}: the group has committed {want} entries of it, and the visible "
                f"output holds {have}"
            )
            found.append(
                view.anomaly(
                    "ahead-of-commit",
                    said,
                    key,
                    states[want - 1] if want else None,
                    outputs[-1].record,
                )
            )
        elif missing:
            said = (
                f"{text(key)}: the group has committed {want} entries of it, and {len(missing)} "
                "of their outputs never came"
            )
            found.append(view.anomaly("lost", said, key, states[min(missing)]))
    return found


def _is_due(
    view: View, output: Output | None, states: list[State], want: int, *, may_lead: bool
) -> bool:
    """Whether a join's output, or its silence, says what the last committed state says, or what a
    later one says that may lead.

    Who may lead may also have shown a pair before a crash, and read its row again before its
    partner: then nothing is due.
    """
    due = states[want - 1] if want else None
    later = states[want:] if may_lead else []
    return any(view.shows(output, state) for state in (due, *later)) or bool(
        may_lead and due and due.value == NOTHING
    )


@check("whole", anomalies=("torn",))
def whole(history: History, application: str) -> list[Anomaly]:
    """Whether, at this settled point, every entry's accounts all have it or all lack it (G3)."""
    view = view_of(history, application)
    found = [a for a in view.foreign if a.name == "torn"]
    shown = {
        key: max((o.index for o in view.outputs.get(key, [])), default=-1) for key in view.states
    }
    members: dict[tuple[int, int], list[tuple[bytes, bool, State]]] = {}
    for key, states in view.states.items():
        for index, state in enumerate(states):
            address = (state.source.partition, state.source.offset)
            members.setdefault(address, []).append((key, index <= shown[key], state))
    for collection in members.values():
        if len({has for _, has, _ in collection}) > 1:
            have = [text(key) for key, has, _ in collection if has]
            lack = [(key, state) for key, has, state in collection if not has]
            said = (
                f"{lack[0][1].source.at} is applied to {', '.join(have)} and not to "
                f"{', '.join(text(k) for k, _ in lack)}"
            )
            found.append(view.anomaly("torn", said, lack[0][0], lack[0][1]))
    return found


def rest(history: History, application: str) -> Paused:
    """The last pause of the input; Inconclusive where Kafka alone took half of the time that it
    allows.
    """
    paused = [p for p in history.of(Paused) if p.application == application][-1]
    if 2 * paused.canary_ms > paused.tolerance_ms:
        raise Inconclusive(
            f"a control record took {paused.canary_ms} ms from produce to read_committed: too "
            "slow to time others"
        )
    return paused


def timed(view: View, paused: Paused, late: list[Anomaly]) -> list[Anomaly]:
    """What is no state at all, and what is late; Inconclusive where it may be late because others
    took the cores.
    """
    if late and not view.foreign and paused.others > BUSY:
        raise Inconclusive(
            f"{late[0].text}, but others took {paused.others:.0%} of the cores meanwhile"
        )
    return [*view.foreign, *late]


@check("promptly", anomalies=("late", *NO_STATE))
def promptly(history: History, application: str) -> list[Anomaly]:
    """Whether every state that the input's pause left last was visible in time.

    Inconclusive where Kafka alone took half of that time, or where something is late while others
    took the cores.
    """
    view, paused, found = view_of(history, application), rest(history, application), []
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


@check("recovered", anomalies=("late", *NO_STATE))
def recovered(history: History, application: str) -> list[Anomaly]:
    """Whether an output was new within the promised time of a cold start (G48); Inconclusive as
    `promptly` is.
    """
    view, paused = view_of(history, application), rest(history, application)
    took_ms = paused.looked_ms - paused.since_ms
    mark = next(
        (m for m in reversed(list(history.of(Mark))) if m.happening is Happening.RECOVERED), None
    )
    if mark and mark.at_ms >= paused.since_ms and mark.evidence["after_ms"] <= paused.tolerance_ms:
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


@check("available", anomalies=("late", *NO_STATE))
def available(history: History, application: str, *, of: int = SERVED_OF) -> list[Anomaly]:
    """Whether all but one in so many states were visible, each in its own output or in a later one,
    in time (SLA).

    A state waits from its entry's append, or from `ready` on; a switch of clusters begins nothing
    anew. Inconclusive as `promptly` is, and where there are fewer states than that.
    """
    view, waits = view_of(history, application), waits_of(history, application)
    if len(waits) < of:
        raise Inconclusive(f"{len(waits)} states do not show whether one in {of} is late")
    late = [(wait_ms, state) for wait_ms, state in waits if wait_ms > SERVED_MS]
    if len(late) * of <= len(waits):
        return timed(view, rest(history, application), [])
    said = f"{len(late)} of {len(waits)} states were later than {SERVED_MS} ms"
    found = []
    for wait_ms, state in late:
        how = f"was visible {wait_ms} ms after" if wait_ms < inf else "is not visible since"
        found.append(
            view.anomaly(
                "late", f"{text(state.key)} {how} {state.source.at} ({said})", state.key, state
            )
        )
    return timed(view, rest(history, application), found)


def waits_of(history: History, application: str) -> list[tuple[float, State]]:
    """How many milliseconds each state waited until it, or a later one of its key, was visible:
    from its entry's append, or from the first `ready` on. What a reader never saw waits without
    end."""
    view, waits = view_of(history, application), list[tuple[float, State]]()
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
        by_ms = [*accumulate(reversed(shown_ms), min)][::-1]
        waits += [
            (max(0, at - max(s.source.seen_ms, ready_ms)), s)
            for s, at in zip(states, by_ms, strict=True)
        ]
    return waits


@check("once", anomalies=("duplicated",))
def once(history: History, application: str) -> list[Anomaly]:
    """Whether every output stands there once, in either mode, because nothing died and nothing was
    shared out anew (G21).
    """
    view, found = view_of(history, application), []
    for key, outputs in view.outputs.items():
        seen: dict[int, str] = {}
        for output in outputs:
            if (
                first := seen.setdefault(output.index, output.record.at)
            ) != output.record.at and not output.anomaly:
                state = view.states[key][output.index]
                said = (
                    f"{text(key)} shows {show(state.value)} at {first} and again at "
                    f"{output.record.at}"
                )
                found.append(view.anomaly("duplicated", said, key, state, output.record))
    return found


@check("paced", anomalies=("early", *NO_STATE))
def paced(history: History, application: str) -> list[Anomaly]:
    """Whether no output partition saw more transactions end than intervals had begun since the
    start (G27).

    A start falls into the middle of an interval where these are counted by the clock, as Spark
    does, and ends it at once. Inconclusive where no more waves of input came than transactions may
    end: nothing had to wait for the next one then.
    """
    view = view_of(history, application)
    interval_ms = int(view.application.parameters["commit_interval_ms"])
    started_ms = next(
        e.at_ms
        for e in history.of(Instance)
        if (e.application, e.event) == (application, "started")
    )
    last_ms = max(
        [started_ms, *(o.record.seen_ms for outputs in view.outputs.values() for o in outputs)]
    )
    may = (last_ms - started_ms) // interval_ms + 2
    if len({r.seen_ms for r in view.inputs if r.seen_ms > started_ms}) <= may:
        raise Inconclusive(
            f"{may} transactions may end in {last_ms - started_ms} ms, and no more waves of input "
            "came"
        )
    ended = Counter(b.partition for b in history.of(Batch) if b.topic == view.table and b.control)
    found = list(view.foreign)
    for partition, count in sorted(ended.items()):
        if count > may:
            said = (
                f"{count} transactions ended in {view.table}-{partition} within "
                f"{last_ms - started_ms} ms, "
            )
            said += f"where an interval lasts {interval_ms} ms"
            found.append(
                Anomaly(name="early", text=said, expected=f"{may} at most", got=f"{count}")
            )
    return found


@check("below-the-commit", anomalies=("duplicated",))
def below_the_commit(history: History, application: str) -> list[Anomaly]:
    """Whether, after a crash, only outputs come again whose input the crash left uncommitted
    (G47).
    """
    view = view_of(history, application)
    events = history.events
    at = max(
        i
        for i, e in enumerate(events)
        if isinstance(e, Committed) and e.application == application and e.down
    )
    committed = events[at]
    assert isinstance(committed, Committed)
    later = {id(e) for e in events[at:] if isinstance(e, Record)}
    found = []
    for key, outputs in view.outputs.items():
        states = view.states.get(key, [])
        limit = cut(known(committed), states)
        for output in outputs:
            if id(output.record) in later and 0 <= output.index < limit:
                state = states[output.index]
                said = (
                    f"{text(key)} shows {show(state.value)} again, though {state.source.at} was "
                    "committed at the kill"
                )
                found.append(view.anomaly("duplicated", said, key, state, output.record))
    return found
