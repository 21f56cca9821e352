"""The view of the checks: an application's input, model and visible outputs.

It is derived from a history.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from typing import Final, NamedTuple, TypeVar, cast

from upheld.history import History
from upheld.history.events import Application, Instance, Mark, Notice, Offsets, Record
from upheld.history.evidence import Gap, Truncation
from upheld.history.marks import Happening
from upheld.programs import (
    DEAD_LETTERS,
    GONE,
    NOTHING,
    PROGRAMS,
    Diagnose,
    Diagnosis,
    Merge,
    Program,
    Progress,
    State,
    States,
    Unreadable,
    Value,
    modelled,
)
from upheld.programs.interleavings import Interleavings, Walk
from upheld.programs.itself import UNTRACED, Itself
from upheld.programs.modelled import Lanes, lanes_of
from upheld.verdicts import Anomaly, Inconclusive, NotOffered

Derived = TypeVar("Derived")
# The address of a value that a key may show -> the indexes of its states that have it.
Places = dict[Hashable, list[int]]

AMBIGUOUS: Final = (
    "several orders of its inputs may explain its outputs, so that nobody can say which input an "
    "output comes of"
)
NOWHERE: Final = -1  # the index of an output that shows no state
SHOWN: Final = 160  # characters of a value
BEGINNINGS: Final = {"started", "resumed"}
ENDS: Final = {"stopped", "killed", "failed", "exited"}


class _Seen(NamedTuple):
    """A visible record of the output, and the interruptions before it."""

    record: Record
    interruptions: int


class Fold(NamedTuple):
    """The model's states of an input, and the records that cannot be read."""

    states: States
    unreadable: list[Record]


@dataclass(slots=True)
class Output:
    """A state that a visible output shows, and its index among its key's states.

    An output that shows no state has an anomaly.

    If several topics make the states, ``progress`` says how many of the key's records of each it
    holds. Then the index says only whether that is all. ``interruptions`` counts how often an
    instance had begun, gone on again, recovered within its process, or left its part to another one
    by then. Each of them may have made an at_least_once design step back once.
    """

    record: Record
    index: int
    interruptions: int
    anomaly: Anomaly | None = None
    progress: Progress = ()


class Interleaved(NamedTuple):
    """The outputs that some order of several inputs explains, by their keys.

    Attributes:
        walks: The searches for such an order.
        states: The states in it.
        outputs: The visible outputs.
        shown: Those of them that can be read.
        undecided: The bound that a search has passed.
    """

    walks: dict[bytes, Walk]
    states: States
    outputs: dict[bytes, list[Output]]
    shown: dict[bytes, list[Record]]
    undecided: dict[bytes, str]


class _Searched(NamedTuple):
    """What a fold of several inputs may show, and the length of the log that it is of."""

    log: tuple[int, int, int]
    found: Interleavings


class _Owners(NamedTuple):
    """The key of the states of each output of a key, or why nobody knows."""

    owners: dict[bytes, list[bytes]]
    undecided: dict[bytes, str]
    ambiguous: set[bytes]  # keys of which an output may come of several partitions


class View:
    """One stage of an application of a history, with everything derived once.

    It is the last stage if no other is named.
    """

    def __init__(self, history: History, application: str, stage: Program | None = None) -> None:
        self.history = history
        self.application: Application = history.application(application)
        self.program: Program = stage or self._program()
        self._placed: dict[bytes, Places] = {}

    def _program(self) -> Program:
        if self.application.contract:
            return modelled.program_of(self.history, self.application)
        return PROGRAMS[self.application.program]

    @cached_property
    def _names_sources(self) -> bool:
        """Whether a state has an input that it comes of, and not just the last one."""
        return self.program.is_last_alone or untraced(self) is None

    @cached_property
    def exactly_once(self) -> bool:
        """Whether the stricter face of the promise is judged."""
        return self.application.mode == "exactly_once"

    @property
    def conflates(self) -> bool:
        """Whether outputs may skip states.

        The program says so, unless the design declares that it emits every state. If several topics
        make a row, they have no mutual order. Then nobody can say which states are between two.
        """
        return self.program.conflates and not (
            self.history.begun.emits == "every-state" and self.is_one_log
        )

    @property
    def is_one_log(self) -> bool:
        """Whether one topic alone makes the states of a key, which have an order then."""
        is_one_input = self.program.interleaved is None and not self.program.is_shared_out
        return self.program.merged is None and not self.program.beside and is_one_input

    @property
    def stages(self) -> "tuple[View, ...]":
        """This stage, and those before it."""
        return self, *self._before

    @cached_property
    def _before(self) -> "tuple[View, ...]":
        return tuple(
            View(self.history, self.application.name, stage) for stage in self.program.stages[1:]
        )

    @property
    def table(self) -> str:
        """The topic of the outputs.

        It is the harness's topic, unless the design has said that one of its own is the table.
        """
        named = (
            e.table
            for e in self.history.of(Instance)
            if e.application == self.application.name and e.table
        )
        return next(named, self.application.topics[self.program.writes])

    @cached_property
    def inputs(self) -> list[Record]:
        """Every input record in the order of the log, aborted ones too.

        Records that retention deleted before they were read are left out if the design said that it
        goes on after them.
        """
        passed = self._passed_over
        if not passed:
            return self.log
        return [r for r in self.log if r.offset not in passed.get(f"{r.topic}-{r.partition}", ())]

    @cached_property
    def _passed_over(self) -> dict[str, range]:
        """The deleted offsets of each partition of which a notice says that they are left out."""
        gaps: dict[str, Gap] = {}
        for mark in self.history.of(Mark):
            if mark.happening is Happening.INPUT_TRUNCATED:
                gaps |= Truncation.of(mark).gaps
        told = resets_of(self.history, self.application.name)
        return {
            place: range(max(gap.begin, told[place].begin), min(gap.end, told[place].end))
            for place, gap in gaps.items()
            if place in told
        }

    @cached_property
    def log(self) -> list[Record]:
        """Every input record that was fed, in the order of the log.

        An upstream's outputs are recorded twice, and stand here once.
        """
        topics = {self.application.topics[role] for role in self.program.inputs}
        records = (r for r in self.history.of(Record) if r.topic in topics)
        log = {(r.topic, r.partition, r.incarnation, r.offset): r for r in records}
        return [log[place] for place in sorted(log)]

    @cached_property
    def states(self) -> States:
        """The model's states: the fold of the input that read_committed readers see.

        Of several inputs it is a fold that explains what is visible, if there is one.
        """
        if self.interleaved is not None:
            return self.interleaved.states
        folded = self._folded(visible=True).states
        if not self.program.is_shared_out or not self._owners.undecided:
            return folded
        lanes = {lane for key in self._owners.undecided for lane in self._lanes[key].keys}
        return {key: states for key, states in folded.items() if key not in lanes}

    @cached_property
    def interleaved(self) -> "Interleaved | None":
        """The outputs of a fold of several inputs, as some order of these explains them.

        There are none if no such fold says what is right.
        """
        if self.program.interleaved is None:
            return None
        of = self._interleavings(self.program.interleaved)
        walks = {
            key: of.walk(key, exactly_once=self.exactly_once)
            for key in dict.fromkeys([*of.owners, *self._seen])
        }
        found = Interleaved(walks, {}, {}, {}, {})
        for key, walk in walks.items():
            self._explain(key, walk, found)
        return found

    def _interleavings(
        self, interleaved: Callable[[list[Record], States], Interleavings]
    ) -> Interleavings:
        """Return what a fold of several inputs may show of the log as it is.

        Answers of the fold stay when the log grows.
        """
        visible = sum(record.visible for record in self.inputs)
        log = len(self.inputs), visible, len(self._passed_over)
        before = self.history.derived.get((self.application.name, "interleavings"))
        if isinstance(before, _Searched) and before.log == log:
            return before.found
        unreadable = set(map(id, self.unreadable))
        sound = [record for record in self.inputs if id(record) not in unreadable]
        found = interleaved(sound, self._folded(visible=True).states)
        if isinstance(before, _Searched):
            found = replace(found, answers=before.found.answers)
        self.history.derived[self.application.name, "interleavings"] = _Searched(log, found)
        return found

    def _explain(self, key: bytes, walk: Walk, found: "Interleaved") -> None:
        """Note what some order of the inputs explains of one key."""
        seen = self._seen.get(key, [])
        values = [self._value(each.record) for each in seen]
        read = [
            (each, value)
            for each, value in zip(seen, values, strict=True)
            if not isinstance(value, Unreadable)
        ]
        shown = walk.show([(value, each.interruptions) for each, value in read])
        if walk.undecided:
            found.undecided[key] = walk.undecided
            return
        states = walk.states()
        if states:
            found.states[key] = states
        found.shown[key] = [each.record for each, _ in read]
        places = zip(shown, walk.indexes(states), strict=True)
        outputs = found.outputs[key] = []
        for each, value in zip(seen, values, strict=True):
            if isinstance(value, Unreadable):
                anomaly = self._unreadable(key, value)
                outputs.append(Output(each.record, NOWHERE, each.interruptions, anomaly))
                continue
            what, index = next(places)
            output = Output(each.record, index, each.interruptions)
            if what.foreign:
                output.anomaly = self._misfit(each.record, key, value, what.foreign)
            outputs.append(output)

    @cached_property
    def unreadable(self) -> list[Record]:
        """The input records, aborted or not, that the contract does not allow."""
        visible = self._folded(visible=True).unreadable
        aborted = self._folded(visible=False).unreadable
        return [*visible, *aborted]

    def _folded(self, *, visible: bool) -> Fold:
        kind = "visible" if visible else "aborted"
        return self._derived(
            f"fold of what is {kind} by {self.program.name}", lambda: self._fold(visible=visible)
        )

    def _fold(self, *, visible: bool) -> Fold:
        """Return the states, and the records that cannot be read.

        Such a record is set aside or stops a design, and nothing else comes of it.
        """
        records = [r for r in self.inputs if r.visible is visible]
        try:
            return Fold(self.program.model(records), [])
        except Unreadable:
            unreadable = [record for record in records if self.is_unreadable(record)]
            left_out = set(map(id, unreadable))
            sound = [record for record in records if id(record) not in left_out]
            return Fold(self.program.model(sound), unreadable)

    @property
    def dead_letters(self) -> list[Record]:
        """The dead letters, in the order they were seen.

        There are none without a topic for them.
        """
        topic = self.application.topics.get(DEAD_LETTERS)
        return [r for r in self.history.of(Record) if r.topic == topic and r.visible]

    def _derived(self, what: str, fold: Callable[[], Derived]) -> Derived:
        """Return a result that follows from the input alone, folded once.

        A log only grows, so its length says which log it is, with the places that are left out.
        """
        visible = sum(record.visible for record in self.inputs)
        log = (self.application.name, what, len(self.inputs), visible, len(self._passed_over))
        if log not in self.history.derived:
            self.history.derived[log] = fold()
        return cast(Derived, self.history.derived[log])

    @cached_property
    def merged(self) -> Merge | None:
        """The legal rows, if several topics make the program's outputs."""
        merge = self.program.merged
        return None if merge is None else self._derived("merged", lambda: merge(self.inputs))

    def is_unreadable(self, record: Record) -> bool:
        """Return whether an input record is none that the contract allows."""
        try:
            self.program.model([record])
        except Unreadable:
            return True
        return False

    @cached_property
    def _recovered_ms(self) -> list[int]:
        """When an instance said that it had recovered within its process, in order."""
        return sorted(notice.at_ms for notice in recoveries(self.history, self.application.name))

    @cached_property
    def outputs(self) -> dict[bytes, list[Output]]:
        """The visible outputs by key, in the order of the log.

        Each is placed among the model's states.
        """
        if self.interleaved is not None:
            return self.interleaved.outputs
        outputs: dict[bytes, list[Output]] = {}
        for key, seen in self._seen.items():
            owners = self._owners.owners[key] if self.program.is_shared_out else [key] * len(seen)
            for each, own in zip(seen, owners, strict=False):
                shown = outputs.setdefault(own, [])
                self._place(own, each.record, each.interruptions, shown)
        return outputs

    @cached_property
    def _seen(self) -> dict[bytes, list["_Seen"]]:
        """The visible records of the output by key, in the order of the log."""
        topic = self.table
        seen: dict[bytes, list[_Seen]] = {}
        known: set[tuple[int, int]] = set()
        interruptions = -1  # the first start interrupts nothing
        running = set[str]()
        for event in self.history.events:
            if isinstance(event, Record):
                place = (event.partition, event.offset)
                if event.topic == topic and event.visible and place not in known:
                    known.add(place)
                    key = self.program.key_of(event)
                    recoveries = bisect_right(self._recovered_ms, event.seen_ms)
                    each = _Seen(event, max(0, interruptions) + recoveries)
                    seen.setdefault(key, []).append(each)
            elif isinstance(event, Instance) and event.application == self.application.name:
                if event.event in BEGINNINGS:
                    running.add(event.name)
                    interruptions += 1
                elif event.event in ENDS:
                    running.discard(event.name)
                    interruptions += bool(running)
        return seen

    @cached_property
    def _lanes(self) -> dict[bytes, Lanes]:
        """The states of each output key of a map, by the input partition that they come of."""
        return lanes_of(self._folded(visible=True).states)

    @cached_property
    def _owners(self) -> "_Owners":
        """The keys of the states that outputs show, if those are kept apart by their input."""
        found = _Owners({}, {}, set())
        for key, seen in self._seen.items():
            values = [(self.content(each.record), each.interruptions) for each in seen]
            lanes = self._lanes.get(key, Lanes())
            if lanes.is_ambiguous(value for value, _ in values):
                found.ambiguous.add(key)
            try:
                owners = lanes.owners(values, exactly_once=self.exactly_once)
            except Inconclusive as bound:
                found.undecided[key] = str(bound)
                owners = []
            found.owners[key] = [own or key for own in owners]
        return found

    def _value(self, record: Record) -> Value | Unreadable:
        """Return the value of an output, or why it cannot be read."""
        try:
            return self.program.value_of(record)
        except Unreadable as error:
            return error

    def _unreadable(self, key: bytes, error: Unreadable) -> Anomaly:
        return Anomaly(name="phantom", text=error.why, key=text(key))

    def _place(self, key: bytes, record: Record, interruptions: int, shown: list[Output]) -> None:
        """Place an output among the states, after those that its key has shown so far."""
        try:
            items = self.program.items(self.program.value_of(record))
        except Unreadable as error:
            phantom = self._unreadable(key, error)
            shown.append(Output(record, NOWHERE, interruptions, phantom))
            return
        states = self.states.get(key, [])
        for value in items:
            if states and self.merged:
                shown.append(self._merge(record, key, value, interruptions))
            elif indexes := self._indexes(key, value, states):
                shown.append(Output(record, self._index(states, indexes, shown), interruptions))
            elif states and self.program.is_last_alone:
                shown.append(Output(record, 0, interruptions))
            else:
                misfit = self._misfit(record, key, value)
                shown.append(Output(record, NOWHERE, interruptions, misfit))

    def _indexes(self, key: bytes, value: Value, states: list[State]) -> list[int]:
        """Return the indexes of a key's states that have a value."""
        places = self._placed.get(key)
        if places is None:  # its first output
            places = self._placed[key] = self._places(states)
        indexes = places.get(self.program.address(value), [])
        if len(indexes) == 1:
            return indexes if states[indexes[0]].value == value else []
        return [index for index in indexes if states[index].value == value]

    def _places(self, states: list[State]) -> Places:
        """Return the indexes of states by the addresses of their values."""
        address = self.program.address
        places = defaultdict[Hashable, list[int]](list)
        for index, state in enumerate(states):
            places[address(state.value)].append(index)
        return places

    def _merge(self, record: Record, key: bytes, value: Value, interruptions: int) -> Output:
        assert self.merged
        place = self.merged.progress(key, value)
        if isinstance(place, Diagnosis):
            misfit = self._misfit(record, key, value, place)
            return Output(record, NOWHERE, interruptions, misfit)
        due = self.merged.due
        is_whole = place[:due] == self.merged.whole(key)[:due]
        return Output(record, int(is_whole), interruptions, progress=place)

    def _index(self, states: list[State], indexes: list[int], shown: list[Output]) -> int:
        """Choose among the states that say the same.

        It is the first one after the state that was shown last. From there on a repeat is legal. If
        rows may be written again, it is the state that was shown last, where that says the same.
        """
        if shown and not shown[-1].anomaly:
            last = shown[-1].index
        else:
            last = next((o.index for o in reversed(shown) if not o.anomaly), NOWHERE)
        is_after_tombstone = last >= 0 and states[last].value == GONE
        if len(indexes) == 1 and not is_after_tombstone:
            return indexes[0]
        if not self.exactly_once:
            # A step back goes as far as it may.
            return indexes[bisect_left(indexes, last) % len(indexes)]
        if is_after_tombstone:
            return self._after_tombstones(states, indexes, shown, last)
        after = bisect_left if self.program.repeats else bisect_right
        return indexes[min(after(indexes, last), len(indexes) - 1)]

    def _after_tombstones(
        self, states: list[State], indexes: list[int], shown: list[Output], last: int
    ) -> int:
        """Choose among the states that say the same, after a run of tombstones."""
        after = bisect_right(indexes, last)
        sound = (output for output in reversed(shown) if not output.anomaly)
        run = list(takewhile(lambda output: states[output.index].value == GONE, sound))
        if last in indexes:  # a tombstone after others is for another deletion
            known = {id(states[output.index].deletion) for output in run}
            others = (i for i in indexes[after:] if id(states[i].deletion) not in known)
            return next(others, last)
        before = next((output.index for output in run if output.index < indexes[-1]), last)
        # A tombstone that seemed to be for a deletion after this row was for one before it.
        if after == len(indexes) and before != last:
            for output in run:
                output.index = min(output.index, before)
            after = bisect_right(indexes, before)
        return indexes[min(after, len(indexes) - 1)]

    def _misfit(
        self, record: Record, key: bytes, value: Value, said: Diagnosis | None = None
    ) -> Anomaly:
        diagnosis = said or self._diagnose(key, value, self._states_of(key))
        return Anomaly(
            name=diagnosis.name,
            text=(
                f"{record.at} says {show(value)} for {text(key)}, which no fold of the input "
                f"gives: {diagnosis.why}"
            ),
            key=text(key),
            source=diagnosis.blame.at if diagnosis.blame else None,
            expected=show(diagnosis.due.value) if diagnosis.due else None,
            got=f"{show(value)} at {record.at}",
        )

    def _states_of(self, key: bytes) -> list[State]:
        """Return the states of the key of an output, whatever they come of."""
        if not self.program.is_shared_out:
            return self.states.get(key, [])
        lanes = self._lanes.get(key, Lanes()).keys
        return [state for lane in lanes for state in self.states.get(lane, [])]

    def shows(self, output: Output | None, state: State | None) -> bool:
        """Return whether a key's output, or its silence, is just that state.

        A tombstone says no more than silence.
        """
        if output and output.anomaly:
            return False
        shown: Value = GONE
        if output:
            is_own = state is not None and self.program.is_shared_out
            key = state.key if state and is_own else self.program.key_of(output.record)
            shown = self.states[key][output.index].value
        due = state.value if state else GONE
        return shown == due or {shown, due} == {GONE, NOTHING}

    @property
    def is_settled(self) -> bool:
        """Whether every key of every stage shows the model's last state.

        A key of which nothing is known counts as settled.
        """
        if self.interleaved is not None:
            return all(walk.has_ended for walk in self.interleaved.walks.values())
        last = {key: outputs[-1] for key, outputs in self.outputs.items()}
        own = all(self.shows(last.get(key), states[-1]) for key, states in self.states.items())
        return own and all(stage.is_settled for stage in self.stages[1:])

    @cached_property
    def _diagnose(self) -> Diagnose:
        return self.program.diagnosis(self.inputs)

    @cached_property
    def foreign(self) -> list[Anomaly]:
        """Every anomaly of an output that is no state at all."""
        return [o.anomaly for outputs in self.outputs.values() for o in outputs if o.anomaly]

    def content(self, record: Record) -> Value:
        """Return the value of an output, or why the contract does not allow it."""
        try:
            return self.program.value_of(record)
        except Unreadable as error:
            return (error.why,)

    def anomaly(
        self,
        name: str,
        said: str,
        key: bytes,
        state: State | None = None,
        got: Record | None = None,
    ) -> Anomaly:
        """Return an anomaly about one key, with the input concerned and both values.

        Args:
            name: Its name.
            said: Its text.
            key: The key.
            state: The state that is due, if one is.
            got: The output that is wrong, if there is one.
        """
        return Anomaly(
            name=name,
            text=said,
            key=text(key),
            source=state.source.at if state and self._names_sources else None,
            expected=show(state.value) if state else None,
            got=f"{show(self.content(got))} at {got.at}" if got else None,
        )


def view_of(history: History, application: str) -> View:
    """Return the application's view as the history stands.

    It is the same view until there are more of the events that it is derived from.
    """
    count = history.count(Record, Instance, Notice)
    known = history.derived.get(application)
    if isinstance(known, _Known) and known.events == count:
        return known.view
    view = View(history, application)
    history.derived[application] = _Known(count, view)
    return view


def untraced(view: View) -> Itself | None:
    """Return the oracle that does not know which input an output comes of.

    It is None if the oracle does, or if the application has a model.
    """
    contract = view.application.contract
    if contract is None or contract.model:
        return None
    oracle = Itself(view.history, view.application.name, contract)
    return None if oracle.is_traced else oracle


def demand_sources(view: View) -> None:
    """Demand that the input of each state is known.

    Raises:
        NotOffered: The application is its own oracle, and its outputs do not show it; or several
            orders of its inputs may explain an output.
    """
    if untraced(view):
        raise NotOffered(UNTRACED)
    is_ambiguous = view.program.is_shared_out and bool(view._owners.ambiguous)
    if is_ambiguous or view.interleaved is not None:
        raise NotOffered(AMBIGUOUS)


def fitting(view: View, offsets: Offsets, *, may_lead: bool) -> set[bytes]:
    """Return the keys of states that may show just the input below some offsets.

    They are those of a map of several inputs that give equal outputs, so that these can be shared
    out in several ways.
    """
    if not view.program.is_shared_out:
        return set()
    found = set[bytes]()
    for key in view._owners.ambiguous - view._owners.undecided.keys():
        lanes = view._lanes[key]
        outputs = [(view.content(each.record), each.interruptions) for each in view._seen[key]]
        below = [
            sum(
                s.source.offset < offsets.get(f"{s.source.topic}-{s.source.partition}", 0)
                for s in states
            )
            for states in map(view.states.__getitem__, lanes.keys)
        ]
        if lanes.may_end(outputs, below, exactly_once=view.exactly_once, or_more=may_lead):
            found.update(lanes.keys)
    return found


def undecided(view: View) -> list[str]:
    """Return the keys of which nothing is known, each with the bound that was passed."""
    found: dict[bytes, str] = {}
    if view.program.is_shared_out:
        found = view._owners.undecided
    elif view.interleaved is not None:
        found = view.interleaved.undecided
    return [f"{text(key)}: {why}" for key, why in found.items()]


def resets_of(history: History, application: str) -> dict[str, Gap]:
    """Return the gaps that a design says it does not read, by partition.

    Each gap is the positions before and after it. The last notice of a partition counts.
    """
    return {
        f"{said.topic}-{said.partition}": Gap(said.begin or 0, said.end or 0)
        for said in history.of(Notice)
        if said.application == application and said.code == "offset-reset"
    }


def recoveries(history: History, application: str) -> Iterator[Notice]:
    """Go through the notices of an instance that it has recovered within its process.

    Each is an interruption, as a new start is.
    """
    notices = (said for said in history.of(Notice) if said.application == application)
    return (said for said in notices if said.code == "recovered")


class _Known(NamedTuple):
    """A view, and the number of events that it was derived from."""

    events: int
    view: View


def text(key: bytes) -> str:
    """Return a key for a person."""
    return key.decode(errors="backslashreplace")


def show(value: Value) -> str:
    """Return a canonical value for a person, short."""
    shown = ", ".join(str(part) for part in value)
    return shown if len(shown) <= SHOWN else shown[: SHOWN - 3] + "…"
