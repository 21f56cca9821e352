"""Checks of delivery: the effect of every input, in order and whole.

It comes as often as the mode allows.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import NamedTuple

from upheld.checks import interleaved
from upheld.checks.merged import cut_off, progressed, went_back
from upheld.checks.needs import Need
from upheld.checks.prefix import Prefix, is_running, prefix_of, reached
from upheld.checks.registry import NO_STATE, OUTPUTS, RELATION, check
from upheld.checks.view import Output, View, demand_sources, fitting, show, text, untraced, view_of
from upheld.history import History
from upheld.history.events import Batch, Committed, Instance, Record
from upheld.programs import GONE, NOTHING, State, Value
from upheld.programs.itself import UNTRACED, Itself, below
from upheld.verdicts import Anomaly, Inconclusive, NotOffered


@check(
    "relation",
    anomalies=RELATION,
    needs=OUTPUTS,
    by_last_value=True,
)
def relation(history: History, application: str) -> list[Anomaly]:
    """Check that the drained outputs are the model's states, per key.

    Under exactly_once the outputs are in order, none comes twice, and the last one is the last
    state.

    Under at_least_once an output may be repeated. After each new start the key may step back once,
    because outputs that were sent before the crash were not yet committed. It may not step back
    otherwise. The last output is still the last state.

    Outputs may skip states if the program says so, unless the design declares that it emits every
    state. If the contract does not say that each update emits once, an output may come again right
    after itself in either mode. A tombstone may not. Each stage is judged by itself.

    If only the last value of a key is known, nothing else is compared.

    Records of several inputs have no mutual order. The outputs of a fold of them are those of some
    interleaving of its partitions.
    """
    view = view_of(history, application)
    if view.merged:
        return view.foreign + progressed(view)
    if view.interleaved is not None:
        return interleaved.wrong(view)
    return _by_stage(view, _Shown.anomalies)


def so_far(history: History, application: str) -> list[Anomaly]:
    """Return what is wrong with the outputs so far and cannot be mended by later ones."""
    view = view_of(history, application)
    if view.merged:
        return view.foreign + went_back(view)
    if view.interleaved is not None:
        return view.foreign + interleaved.out_of_order(view)
    return _by_stage(view, _Shown.so_far)


def _by_stage(view: View, judged: "Callable[[_Shown], list[Anomaly]]") -> list[Anomaly]:
    """Return what is foreign to each stage, and what is wrong with each of its keys."""
    found = list[Anomaly]()
    for stage in view.stages:
        found += stage.foreign
        for key, states in stage.states.items():
            outputs = [output for output in stage.outputs.get(key, []) if not output.anomaly]
            found += judged(_Shown(stage, key, states, outputs))
    return found


@dataclass(frozen=True)
class _Shown:
    """The states of one key, and the outputs that show them."""

    view: View
    key: bytes
    states: list[State]
    outputs: list[Output]

    def anomalies(self) -> list[Anomaly]:
        """Compare the outputs with the states, from the first output to the last."""
        if not self.outputs:
            return list(self._silence())
        found = self.so_far()
        return [*found, *self._ending(is_sound=not found)]

    def so_far(self) -> list[Anomaly]:
        """Compare each output with the one before it."""
        if not self.outputs:
            return []
        if self.view.program.is_last_alone:
            return [*self._partitions(), *self._ranks()]
        return [*self._partitions(), *self._beginning(), *self._steps()]

    def _silence(self) -> Iterator[Anomaly]:
        if not self.view.shows(None, self.states[-1]):
            said = f"{text(self.key)} has {len(self.states)} states and no visible output"
            yield self.view.anomaly("lost", said, self.key, self.states[-1])

    def _partitions(self) -> Iterator[Anomaly]:
        if len({output.record.partition for output in self.outputs}) > 1:
            said = f"{text(self.key)} lies in more than one partition, so it has no order"
            yield self.view.anomaly("reordered", said, self.key)

    def _beginning(self) -> Iterator[Anomaly]:
        first = self.outputs[0]
        if not self.view.conflates and first.index > 0:
            said = f"{text(self.key)} begins with its output {first.index + 1}, not with its first"
            name = "reordered" if 0 in self._indexes() else "lost"
            yield self.view.anomaly(name, said, self.key, self.states[0], first.record)

    def _steps(self) -> Iterator[Anomaly]:
        """Compare each output with the one before it."""
        seen = {self.outputs[0].index}
        steps_back = 0
        for before, after in pairwise(self.outputs):
            if after.index <= before.index:
                if self.view.exactly_once:
                    if not self._may_come_again(before, after):
                        yield self._again(before, after, is_repeated=after.index in seen)
                elif after.index < before.index:
                    steps_back += 1
                    if steps_back > after.interruptions:
                        yield self._back(before, after)
            elif not self.view.conflates and after.index > before.index + 1:
                yield self._gap(before, after)
            seen.add(after.index)

    def _ranks(self) -> Iterator[Anomaly]:
        """Compare the number of each output that increases with that of the one before it.

        A tombstone ends the states of its key, and others may begin anew.
        """
        rank_of = self.view.program.rank_of
        if rank_of is None:
            return
        seen = list[float]()
        steps_back = 0
        for output in self.outputs:
            rank = rank_of(output.record)
            if output.record.value is None:
                seen.clear()
                continue
            if rank is None:
                said = f"{text(self.key)} has an output without the number that increases"
                state = self.states[output.index]
                yield self.view.anomaly("phantom", said, self.key, state, output.record)
                continue
            before = seen[-1] if seen else -inf
            if self.view.exactly_once and rank <= before:
                yield self._not_above(output, before, is_repeated=rank in seen)
            elif rank < before:
                steps_back += 1
                if steps_back > output.interruptions:
                    yield self._not_above(output, before, is_repeated=False)
            seen.append(rank)

    def _not_above(self, output: Output, before: float, *, is_repeated: bool) -> Anomaly:
        """Return the anomaly of an output whose number is not above that of the one before."""
        shown = show(self.view.content(output.record))
        how = "again" if is_repeated else f"after its number was {before}"
        said = f"{text(self.key)} shows {shown} {how}"
        name = "duplicated" if is_repeated else "reordered"
        return self.view.anomaly(name, said, self.key, self.states[output.index], output.record)

    def _may_come_again(self, before: Output, after: Output) -> bool:
        """Return whether an output may be written right after itself."""
        is_same = after.index == before.index
        return self.view.program.repeats and is_same and self._is_row(after)

    def _is_row(self, output: Output) -> bool:
        return self.states[output.index].value != GONE

    def _again(self, before: Output, after: Output, *, is_repeated: bool) -> Anomaly:
        """Return the anomaly of an output that is no newer than the one before it.

        If rows may be repeated, the fault is not that it came twice, but that it came so late.
        """
        state = self.states[after.index]
        due = self.states[before.index]
        how = "again" if is_repeated else f"after {show(due.value)}"
        is_late = self.view.program.repeats and self._is_row(after)
        is_twice = is_repeated and not is_late
        name = "duplicated" if is_twice else _backwards(self.view, due)
        said = f"{text(self.key)} shows {show(state.value)} {how}"
        return self.view.anomaly(name, said, self.key, state, after.record)

    def _back(self, before: Output, after: Output) -> Anomaly:
        state = self.states[after.index]
        said = (
            f"{text(self.key)} steps back to {show(state.value)} with no crash or rebalance to "
            "allow it"
        )
        name = _backwards(self.view, self.states[before.index])
        return self.view.anomaly(name, said, self.key, state, after.record)

    def _gap(self, before: Output, after: Output) -> Anomaly:
        skipped = range(before.index + 1, after.index)
        ever = self._indexes()
        # If each of them came, they came elsewhere.
        missing = next((index for index in skipped if index not in ever), None)
        said = f"{text(self.key)} skips {len(skipped)} outputs after {before.record.at}"
        name = "reordered" if missing is None else "lost"
        due = self.states[skipped[0] if missing is None else missing]
        return self.view.anomaly(name, said, self.key, due, after.record)

    def _ending(self, *, is_sound: bool) -> Iterator[Anomaly]:
        last = self.outputs[-1]
        is_short = is_sound and self._counts_each and last.index < len(self.states) - 1
        if is_short or not self.view.shows(last, self.states[-1]):
            is_alone = self.view.program.is_last_alone
            shown = self.view.content(last.record) if is_alone else self.states[last.index].value
            is_beyond = is_alone and _is_beyond(self.view, last.record, self.states[-1].value)
            where = "beyond" if is_beyond else "not at"
            said = f"{text(self.key)} ends at {show(shown)}, {where} its last state"
            is_overwritten = (
                self.view.program.beside
                and is_sound
                and _came(self.outputs, self.states, len(self.states))
            )
            name = "phantom" if is_beyond else "lost"
            if is_overwritten:
                name = _backwards(self.view, self.states[-1])
            yield self.view.anomaly(name, said, self.key, self.states[-1], last.record)

    @property
    def _counts_each(self) -> bool:
        """Whether each of several equal outputs at the end is due, as a user's model says."""
        contract = self.view.application.contract
        has_model = contract is not None and contract.model is not None
        return has_model and self.view.exactly_once and not self.view.conflates

    def _indexes(self) -> set[int]:
        return {output.index for output in self.outputs}


def _came(outputs: list[Output], states: list[State], want: int) -> bool:
    """Return whether the last of so many states was shown, or a later one.

    A state of the same row also counts, if a result of another row follows it.
    """
    due = states[want - 1].source
    ends = states[outputs[-1].index].source if outputs else None
    return any(o.index >= want - 1 or (states[o.index].source is due is not ends) for o in outputs)


def _backwards(view: View, before: State) -> str:
    """Return the name of the anomaly of a step back behind this state.

    In a join, a result that was overwritten or deleted comes back.
    """
    if not view.program.beside:
        return "reordered"
    return "resurrected" if before.value == GONE else "stale-overwrite"


def known(committed: Committed) -> dict[str, int]:
    """Return the committed offsets.

    Raises:
        NotOffered: There are none that say how far the outputs are, which the rule needs.
    """
    if committed.offsets is None:
        raise NotOffered(
            "no offsets of a consumer group say how far the outputs are, so the committed input "
            "is not known"
        )
    return committed.offsets


def cut(offsets: dict[str, int], states: list[State]) -> int:
    """Count a key's states up to the last one below the committed offsets.

    A state is below them if all its sources are.
    """

    def is_below(source: Record) -> bool:
        return source.offset < offsets.get(f"{source.topic}-{source.partition}", 0)

    below = (all(map(is_below, state.sources)) for state in states)
    return max((number for number, is_all in enumerate(below, 1) if is_all), default=0)


@check(
    "fold",
    anomalies=("ahead-of-commit", "behind-commit", "stale-overwrite", "resurrected", *NO_STATE),
    needs=OUTPUTS | {Need.CUT},
    by_last_value=True,
)
def fold(history: History, application: str) -> list[Anomaly]:
    """Check the prefix rule: the outputs are the fold of the committed input.

    It is judged with every instance down. Under exactly_once the last visible output of each key
    equals the fold. Under at_least_once it equals the fold or a later state, because outputs come
    before the commit. The same holds under exactly_once for a design that is atomic per shard,
    until its restart.

    Outputs that may skip no state show everything below the commit, unless the program holds back
    records that it has read.

    If no offsets in Kafka say how far the outputs are, they have to be the fold of some prefix of
    each input partition. The shortest prefix is compared that has all the input of what was ever
    visible. If outputs may lead, there always is such a prefix. With a hop in between, keys of one
    partition come by several ways, so that each key has a prefix of its own.

    An application without a model may not show which input an output is of. Then the last value of
    each key is compared with that of a run on the committed input alone. If outputs may lead, a key
    has to be as far as that run at least. The number of its outputs says so, or one that increases
    with each state.
    """
    view = view_of(history, application)
    committed = [c for c in history.of(Committed) if c.application == application and c.down][-1]
    may_lead = not view.exactly_once or history.begun.atomic == "shard"
    if oracle := untraced(view):
        return [*view.foreign, *_cut_off(view, oracle, committed, may_lead=may_lead)]
    found = list(view.foreign)
    if committed.offsets is None and may_lead:
        return found
    prefix = prefix_of(view, committed)
    is_by_key = committed.offsets is None and history.begun.progress == "group-leads"
    if view.merged:
        return found if is_by_key else found + cut_off(view, prefix, may_lead=may_lead)
    if view.interleaved is not None:
        if committed.offsets is None:
            demand_sources(view)
        return found + interleaved.cut_off(view, prefix, may_lead=may_lead)
    if committed.offsets is None and view.program.is_shared_out:
        demand_sources(view)
    fits = fitting(view, prefix.offsets, may_lead=may_lead)
    for key, states in view.states.items():
        if key in fits:
            continue
        outputs = [output for output in view.outputs.get(key, []) if not output.anomaly]
        if is_by_key:
            prefix = Prefix(reached(view, key), is_committed=False)
        found += _Cut(view, key, states, outputs, prefix).anomalies(may_lead=may_lead)
    return found


def _cut_off(
    view: View, oracle: Itself, committed: Committed, *, may_lead: bool
) -> Iterator[Anomaly]:
    """Go through the keys that do not show what a run on the committed input alone gives.

    Raises:
        NotOffered: There was no such run, or nobody can say which of two outputs is later.
    """
    if committed.offsets is None:
        raise NotOffered(UNTRACED)
    inputs = below(committed.offsets, view.inputs)
    if not may_lead:
        yield from _otherwise(view, oracle.values(inputs))
    elif oracle.is_last_alone:
        yield from _lower(view, oracle.ranks(inputs))
    else:
        yield from _short(view, oracle.values(inputs))


def _is_beyond(view: View, output: Record, state: Value) -> bool:
    """Return whether an output has a higher number than a state, if one increases."""
    rank_of = view.program.rank_of
    if rank_of is None:
        return False
    shown, due = rank_of(output), rank_of(state)
    return shown is not None and due is not None and shown > due


def _otherwise(view: View, due: dict[bytes, list[Value]]) -> Iterator[Anomaly]:
    """Go through the keys whose last visible value is not the one that is due."""
    shown = {key: [output.record for output in outputs] for key, outputs in view.outputs.items()}
    for key in sorted(due.keys() | shown.keys()):
        values = [view.content(record) for record in shown.get(key, [])]
        if (values[-1:] or [GONE]) == (due.get(key, [])[-1:] or [GONE]):
            continue
        last = shown[key][-1] if key in shown else None
        is_past = key not in due or due[key][-1] in values
        if not is_past and last:
            is_past = _is_beyond(view, last, due[key][-1])
        name = "ahead-of-commit" if is_past else "behind-commit"
        got = f"{show(values[-1])} at {last.at}" if last else None
        expected = show(due[key][-1]) if key in due else None
        said = (
            f"{text(key)}: the committed input gives {expected or 'nothing'}, and the visible "
            f"output is {show(values[-1]) if values else 'none'}"
        )
        yield Anomaly(name=name, text=said, key=text(key), expected=expected, got=got)


def _short(view: View, due: dict[bytes, list[Value]]) -> Iterator[Anomaly]:
    """Go through the keys whose visible outputs end before those that are due."""
    for key in sorted(due.keys() & view.states.keys()):
        want = len(due[key])
        outputs = [output for output in view.outputs.get(key, []) if not output.anomaly]
        have = outputs[-1].index + 1 if outputs else 0
        if have < want:
            said = (
                f"{text(key)}: the committed input gives {want} outputs of it, and the visible "
                f"ones end at number {have}"
            )
            state = view.states[key][want - 1]
            last = outputs[-1].record if outputs else None
            yield view.anomaly("behind-commit", said, key, state, last)


def _lower(view: View, due: dict[bytes, tuple[float, Record]]) -> Iterator[Anomaly]:
    """Go through the keys whose last visible output has a lower number than is due."""
    rank_of = view.program.rank_of
    for key in sorted(due.keys() & view.states.keys()):
        want, record = due[key]
        outputs = [output.record for output in view.outputs.get(key, []) if not output.anomaly]
        last = outputs[-1] if outputs else None
        have = rank_of(last) if rank_of and last else None
        if have is None or have < want:
            expected = show(view.content(record))
            shown = show(view.content(last)) if last else "none"
            said = (
                f"{text(key)}: the committed input gives {expected}, and the visible output is "
                f"{shown}, which comes before it"
            )
            yield view.anomaly("behind-commit", said, key, view.states[key][-1], last)


@dataclass(frozen=True)
class _Cut:
    """The states of one key, and the outputs that are to show those of a prefix."""

    view: View
    key: bytes
    states: list[State]
    outputs: list[Output]
    prefix: Prefix

    def anomalies(self, *, may_lead: bool) -> list[Anomaly]:
        """Compare the last output with the last state of the prefix."""
        program = self.view.program
        last = self.outputs[-1] if self.outputs else None
        have = last.index + 1 if last else 0
        want = cut(self.prefix.offsets, self.states)
        if program.beside and _is_due(self.view, last, self.states, want, may_lead=may_lead):
            return []
        if have < want and not program.holds_back:
            return [self._behind(want, have)]
        if have > want and not may_lead:
            due = self.states[want - 1] if want else None
            return [self._anomaly("ahead-of-commit", self.prefix.says(want, have), due)]
        if self.view.conflates or program.holds_back:
            return []
        return self._missing(want)

    def _behind(self, want: int, have: int) -> Anomaly:
        due = self.states[want - 1]
        is_overwritten = self.view.program.beside and _came(self.outputs, self.states, want)
        name = _backwards(self.view, due) if is_overwritten else self.prefix.behind
        return self._anomaly(name, self.prefix.says(want, have), due)

    def _missing(self, want: int) -> list[Anomaly]:
        """Return that a state of the prefix never came, though a later one did."""
        missing = set(range(want)) - {output.index for output in self.outputs}
        if not missing:
            return []
        said = f"{text(self.key)}: {len(missing)} outputs of its first {want} entries never came"
        return [self.view.anomaly("lost", said, self.key, self.states[min(missing)])]

    def _anomaly(self, name: str, said: str, due: State | None) -> Anomaly:
        got = self.outputs[-1].record if self.outputs else None
        return self.view.anomaly(name, f"{text(self.key)}: {said}", self.key, due, got)


def _is_due(
    view: View, output: Output | None, states: list[State], want: int, *, may_lead: bool
) -> bool:
    """Return whether a join's output, or its silence, is the last committed state.

    If outputs may lead, it may also be a later state. Then a design may also have shown a pair
    before a crash, and read its row again before its partner: then nothing is due.
    """
    due = states[want - 1] if want else None
    later = states[want:] if may_lead else []
    return any(view.shows(output, state) for state in (due, *later)) or bool(
        may_lead and due and due.value == NOTHING
    )


class Shown(NamedTuple):
    """The states that the input gives, and those of them that outputs show."""

    due: int = 0
    shown: int = 0


def shown_of(history: History, applications: Iterable[str]) -> Shown:
    """Count the due and the shown states of applications whose outputs may skip some.

    It is a hint whether a design means to emit every state. A verdict does not hang on it.
    """
    views = [view_of(history, name) for name in applications]
    stages = [
        stage for view in views for stage in view.stages if stage.conflates and stage.is_one_log
    ]
    shown = sum(
        len({output.index for output in outputs if not output.anomaly})
        for stage in stages
        for outputs in stage.outputs.values()
    )
    return Shown(sum(len(states) for stage in stages for states in stage.states.values()), shown)


class _Member(NamedTuple):
    """An account of an entry, and whether its output holds the entry."""

    key: bytes
    has: bool
    state: State


@check(
    "whole",
    anomalies=("torn",),
    needs=OUTPUTS,
)
def whole(history: History, application: str) -> list[Anomaly]:
    """Check that all accounts of an entry have it, or all lack it (G3).

    This is a settled point. A design that is atomic per shard makes an entry visible in several
    transactions. Then only accounts of one output partition have it together, because no shard is
    smaller than that. With a hop in between, a crash settles nothing.
    """
    view = view_of(history, application)
    if history.begun.progress == "group-leads" and not is_running(history, application):
        raise NotOffered(
            "its input goes through a hop, so that a crash leaves entries on their way"
        )
    found = [anomaly for anomaly in view.foreign if anomaly.name == "torn"]
    by_shard = history.begun.atomic == "shard"
    for collection in _collections(view, by_shard=by_shard):
        have = [text(member.key) for member in collection if member.has]
        lack = [member for member in collection if not member.has]
        if have and lack:
            first = lack[0]
            said = (
                f"{first.state.source.at} is applied to {', '.join(have)} and not to "
                f"{', '.join(text(member.key) for member in lack)}"
            )
            found.append(view.anomaly("torn", said, first.key, first.state))
    return found


def _collections(view: View, *, by_shard: bool) -> Iterable[list[_Member]]:
    """Return the accounts of each entry, which have it together.

    If shards are committed one by one, they are those that lie in one output partition. Nobody
    knows where an account without an output lies.
    """
    members = defaultdict[tuple[str, int, int, int | None], list[_Member]](list)
    for key, states in view.states.items():
        outputs = view.outputs.get(key, [])
        shown = max((output.index for output in outputs), default=-1)
        lies_in = outputs[0].record.partition if outputs else None
        if by_shard and lies_in is None:
            continue
        for index, state in enumerate(states):
            shard = lies_in if by_shard else None
            address = (state.source.topic, state.source.partition, state.source.offset, shard)
            members[address].append(_Member(key, index <= shown, state))
    return members.values()


@check(
    "once",
    anomalies=("duplicated",),
    needs=OUTPUTS,
    by_last_value=True,
)
def once(history: History, application: str) -> list[Anomaly]:
    """Check that every output stands there once, in either mode (G21).

    No instance died, and nothing was shared out anew. If only the last value of each key is known,
    a key that shows no value again shows nothing twice. If a key does, it may have been in the same
    state again, so that the check is not offered.
    """
    view = view_of(history, application)
    if view.program.is_last_alone:
        return _again(view)
    found = []
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


def _again(view: View) -> list[Anomaly]:
    """Return what comes again, where only the last value of each key is known.

    A number that increases says so. Without one, a value that comes again may be another state.

    Raises:
        NotOffered: A key shows a value again, and nobody can say whether its state was the same.
    """
    rank_of = view.program.rank_of
    found = []
    for key, outputs in view.outputs.items():
        seen = set[object]()
        for output in outputs:
            shown = rank_of(output.record) if rank_of else view.content(output.record)
            if output.record.value is None and rank_of:
                seen.clear()  # others may begin anew
            elif shown in seen and not output.anomaly:
                said = f"{text(key)} shows {show(view.content(output.record))} again"
                state = view.states[key][output.index]
                found.append(view.anomaly("duplicated", said, key, state, output.record))
            seen.add(shown)
    if found and rank_of is None:
        raise NotOffered(
            f"{found[0].text}, and without a fault its keys have different numbers of outputs, so "
            "that nobody can say whether its state was the same"
        )
    return found


@check(
    "paced",
    anomalies=("early", *NO_STATE),
    needs=OUTPUTS | {Need.BATCHES},
    by_last_value=True,
)
def paced(history: History, application: str) -> list[Anomaly]:
    """Check that transactions end no more often than intervals begin (G27).

    They are counted for each output partition, with the intervals that had begun since the start.
    If a design counts intervals by the clock, as Spark does, a start falls into the middle of an
    interval, and ends it at once. Inconclusive if no more waves of input came than transactions may
    end: then no wave had to wait for the next transaction.
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


@check(
    "below-the-commit",
    anomalies=("duplicated",),
    needs=OUTPUTS | {Need.CUT},
)
def below_the_commit(history: History, application: str) -> list[Anomaly]:
    """Check that only outputs of uncommitted input come again after a crash (G47)."""
    view = view_of(history, application)
    demand_sources(view)
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
        offsets = known(committed)
        limit = cut(offsets, states)
        for output in outputs:
            if id(output.record) in later and 0 <= output.index < limit:
                state = states[output.index]
                if view.interleaved is not None and not cut(offsets, [state]):
                    continue  # several inputs: it comes before others that are committed
                said = (
                    f"{text(key)} shows {show(state.value)} again, though {state.source.at} was "
                    "committed at the kill"
                )
                found.append(view.anomaly("duplicated", said, key, state, output.record))
    return found
