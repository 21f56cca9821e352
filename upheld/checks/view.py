"""What the checks look at: one application's input, model and visible outputs, drawn from a
history.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import TypeVar

from upheld.history import History
from upheld.history.events import Application, Instance, Record
from upheld.programs import (
    DEAD_LETTERS,
    GONE,
    NOTHING,
    PROGRAMS,
    Diagnose,
    Diagnosis,
    Merge,
    Program,
    State,
    States,
    Unreadable,
)
from upheld.verdicts import Anomaly

Derived = TypeVar("Derived")
Places = dict[Hashable, list[int]]  # the address of what a key may show -> where among its states


@dataclass(slots=True)
class Output:
    """A state that a visible output shows, and where it stands among its key's: an index, or the
    anomaly that it is.

    Where several topics make the states, ``progress`` says how many of the key's records of each it
    holds, and the index only whether that is all. ``interruptions``: how often an instance had
    begun, gone on again, or left its part to another when it was seen, each of which may have made
    an at_least_once design step back once.
    """

    record: Record
    index: int
    interruptions: int
    anomaly: Anomaly | None = None
    progress: tuple[int, ...] = ()


class View:
    """One stage of an application of a history, the last one if no other is named, with everything
    derived once.
    """

    def __init__(self, history: History, application: str, stage: Program | None = None) -> None:
        self.history = history
        self.application: Application = history.application(application)
        self.program: Program = stage or PROGRAMS[self.application.program]
        self._placed: dict[bytes, Places] = {}

    @cached_property
    def exactly_once(self) -> bool:
        """Whether the stricter face of the promise is judged."""
        return self.application.mode == "exactly_once"

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
        """The topic of the outputs: the harness's, unless the design has said that one of its own
        is the table.
        """
        named = (
            e.table
            for e in self.history.of(Instance)
            if e.application == self.application.name and e.table
        )
        return next(named, self.application.topics[self.program.writes])

    @cached_property
    def inputs(self) -> list[Record]:
        """Every input record of the log, aborted ones too, in its order (an upstream's outputs are
        recorded twice).
        """
        topics = {self.application.topics[role] for role in self.program.inputs}
        records = (r for r in self.history.of(Record) if r.topic in topics)
        log = {(r.topic, r.partition, r.incarnation, r.offset): r for r in records}
        return [log[place] for place in sorted(log)]

    @cached_property
    def states(self) -> States:
        """The model's states: the fold of what a read_committed reader of the input sees."""
        return self._folded(visible=True)[0]

    @cached_property
    def flawed(self) -> list[Record]:
        """What lies in the input, aborted or not, and is nothing that the contract allows."""
        return [*self._folded(visible=True)[1], *self._folded(visible=False)[1]]

    def _folded(self, *, visible: bool) -> tuple[States, list[Record]]:
        kind = "visible" if visible else "aborted"
        return self._derived(
            f"fold of what is {kind} by {self.program.name}", lambda: self._fold(visible=visible)
        )

    def _fold(self, *, visible: bool) -> tuple[States, list[Record]]:
        """The states, and what cannot be read: that is set aside or stops a design, and nothing
        else comes of it.
        """
        records = [r for r in self.inputs if r.visible is visible]
        try:
            return self.program.model(records), []
        except Unreadable:
            sound, flawed = list[Record](), list[Record]()
            for record in records:
                (flawed if self.is_flawed(record) else sound).append(record)
            return self.program.model(sound), flawed

    @property
    def dead_letters(self) -> list[Record]:
        """What was set aside, in the order in which it was seen; nothing where there is no topic
        for it.
        """
        topic = self.application.topics.get(DEAD_LETTERS)
        return [r for r in self.history.of(Record) if r.topic == topic and r.visible]

    def _derived(self, what: str, fold: Callable[[], Derived]) -> Derived:
        """What follows from the input alone, folded once: a log only grows, so its length says
        which it is.
        """
        log = self.application.name, what, len(self.inputs), sum(r.visible for r in self.inputs)
        if log not in self.history.derived:
            self.history.derived[log] = fold()
        derived: Derived = self.history.derived[log]
        return derived

    @cached_property
    def merged(self) -> Merge | None:
        """Of a program that several topics make: the rows that are legal."""
        merge = self.program.merged
        return None if merge is None else self._derived("merged", lambda: merge(self.inputs))

    def is_flawed(self, record: Record) -> bool:
        """Whether an input record is none that the contract allows."""
        try:
            self.program.model([record])
        except Unreadable:
            return True
        return False

    @cached_property
    def outputs(self) -> dict[bytes, list[Output]]:
        """Visible outputs by key, in the order of the log, each placed among the model's states."""
        topic = self.table
        outputs: dict[bytes, list[Output]] = {}
        known: set[tuple[int, int]] = set()
        interruptions = -1  # the first start interrupts nothing
        running = set[str]()
        for event in self.history.events:
            if isinstance(event, Record):
                if (
                    event.topic != topic
                    or not event.visible
                    or (event.partition, event.offset) in known
                ):
                    continue
                known.add((event.partition, event.offset))
                self._place(event, max(0, interruptions), outputs.setdefault(event.key or b"", []))
            elif isinstance(event, Instance) and event.application == self.application.name:
                if event.event in {"started", "resumed"}:
                    running.add(event.name)
                    interruptions += 1
                elif event.event in {"stopped", "killed", "failed", "exited"}:
                    running.discard(event.name)
                    interruptions += bool(running)
        return outputs

    def _place(self, record: Record, interruptions: int, shown: list[Output]) -> None:
        """Place what an output says among the states, behind what its key has shown so far."""
        key = record.key or b""
        try:
            items = self.program.items(self.program.value_of(record))
        except Unreadable as error:
            shown.append(
                Output(
                    record,
                    -1,
                    interruptions,
                    Anomaly(name="phantom", text=error.why, key=text(key)),
                )
            )
            return
        states = self.states.get(key, [])
        for value in items:
            if states and self.merged:
                shown.append(self._merge(record, key, value, interruptions))
            elif indexes := self._indexes(key, value, states):
                shown.append(Output(record, self._index(states, indexes, shown), interruptions))
            else:
                shown.append(Output(record, -1, interruptions, self._misfit(record, key, value)))

    def _indexes(self, key: bytes, value: tuple[object, ...], states: list[State]) -> list[int]:
        """Say where among a key's states a value stands."""
        address = self.program.address
        places = self._placed.get(key)
        if places is None:  # its first output
            places = self._placed[key] = defaultdict(list)
            for index, state in enumerate(states):
                places[address(state.value)].append(index)
        return [index for index in places.get(address(value), ()) if states[index].value == value]

    def _merge(
        self, record: Record, key: bytes, value: tuple[object, ...], interruptions: int
    ) -> Output:
        assert self.merged
        place = self.merged.progress(key, value)
        if isinstance(place, Diagnosis):
            return Output(record, -1, interruptions, self._misfit(record, key, value, place))
        due = self.merged.due
        is_whole = place[:due] == self.merged.whole(key)[:due]
        return Output(record, int(is_whole), interruptions, progress=place)

    def _index(self, states: list[State], indexes: list[int], shown: list[Output]) -> int:
        """Which of the states that say the same: the first after what was shown last, where a
        repeat is legal from there on.
        """
        last = -1
        for output in reversed(shown):
            if not output.anomaly:
                last = output.index
                break
        if len(indexes) == 1 and (last < 0 or states[last].value != GONE):
            return indexes[0]
        if not self.exactly_once:
            # A step back goes as far as it may.
            return indexes[bisect_left(indexes, last) % len(indexes)]
        after = bisect_right(indexes, last)
        if last >= 0 and states[last].value == GONE:
            sound = (o for o in reversed(shown) if not o.anomaly)
            run = list(takewhile(lambda o: states[o.index].value == GONE, sound))
            if last in indexes:  # a tombstone behind others is for another deletion
                told = {id(states[o.index].deletion) for o in run}
                return next(
                    (index for index in indexes[after:] if id(states[index].deletion) not in told),
                    last,
                )
            before = next((o.index for o in run if o.index < indexes[-1]), last)
            # What seemed to be for a deletion after this row was for one before it.
            if after == len(indexes) and before != last:
                for output in run:
                    output.index = min(output.index, before)
                after = bisect_right(indexes, before)
        return indexes[min(after, len(indexes) - 1)]

    def _misfit(
        self, record: Record, key: bytes, value: tuple[object, ...], said: Diagnosis | None = None
    ) -> Anomaly:
        diagnosis = said or self._diagnose(key, value, self.states.get(key, []))
        return Anomaly(
            name=diagnosis.name,
            text=f"{record.at} says {show(value)} for {text(key)}, which no fold of the input gives: {diagnosis.why}",
            key=text(key),
            source=diagnosis.blame.at if diagnosis.blame else None,
            expected=show(diagnosis.due.value) if diagnosis.due else None,
            got=f"{show(value)} at {record.at}",
        )

    def shows(self, output: Output | None, state: State | None) -> bool:
        """Whether a key's output, or its silence, is just that state: a tombstone says no more than
        silence.
        """
        if output and output.anomaly:
            return False
        shown = self.states[output.record.key or b""][output.index].value if output else GONE
        due = state.value if state else GONE
        return shown == due or {shown, due} == {GONE, NOTHING}

    @property
    def is_settled(self) -> bool:
        """Whether every key of every stage shows the model's last state."""
        last = {key: outputs[-1] for key, outputs in self.outputs.items()}
        mine = all(self.shows(last.get(key), states[-1]) for key, states in self.states.items())
        return mine and all(stage.is_settled for stage in self.stages[1:])

    @cached_property
    def _diagnose(self) -> Diagnose:
        return self.program.diagnosis(self.inputs)

    @cached_property
    def foreign(self) -> list[Anomaly]:
        """Every output that is no state at all."""
        return [o.anomaly for outputs in self.outputs.values() for o in outputs if o.anomaly]

    def anomaly(
        self,
        name: str,
        said: str,
        key: bytes,
        state: State | None = None,
        got: Record | None = None,
    ) -> Anomaly:
        """An anomaly about one key, with the input concerned and both values, ready to print."""
        return Anomaly(
            name=name,
            text=said,
            key=text(key),
            source=state.source.at if state else None,
            expected=show(state.value) if state else None,
            got=show(self.program.value_of(got)) + f" at {got.at}" if got else None,
        )


def view_of(history: History, application: str) -> View:
    """The application's view as the history stands, the same one until there is more of what it is
    drawn from.
    """
    known, view = history.derived.get(application, (None, None))
    if known != (count := history.count(Record, Instance)):
        view = View(history, application)
        history.derived[application] = count, view
    assert isinstance(view, View)
    return view


def text(key: bytes) -> str:
    """A key for a person."""
    return key.decode(errors="backslashreplace")


def show(value: tuple[object, ...]) -> str:
    """A canonical value for a person, short."""
    shown = ", ".join(str(part) for part in value)
    return shown if len(shown) <= 160 else shown[:157] + "…"
