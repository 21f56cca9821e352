"""Outputs of an application of several inputs, whose records have no order.

Legal is what some interleaving of a prefix of each input partition gives. Records of one partition
stay in their order.

A fold is searched. A candidate is a number of records of each partition, and a state that they
give in some order. The search looks for candidates that show the visible outputs of a key, one
after the other. It takes the first that it finds, and comes back for others only if that leads no
further. So a right key costs little, and a wrong one is known to be wrong when all are tried. The
search has bounds. Beyond them nothing is known of the key, and a row that depends on it is
inconclusive.

A map has no state. Outputs of a key are shared out among the partitions that they may come of. A
search is needed only if two of these give the same value.
"""

import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from heapq import heappop, heappush
from math import prod
from typing import Any, Final, NamedTuple

from upheld.history.events import Record
from upheld.programs.contract import Diagnosis, Progress, State, States, Value
from upheld.reading import loaded
from upheld.verdicts import Inconclusive

MOST_CANDIDATES: Final = 10_000  # that are looked at for one output of one key
MOST_STEPS: Final = 10  # of a model for each input record, for all keys of one output
LEAST_STEPS: Final = 100_000  # that it may take in any case
SMALL: Final = 1_000  # candidates at most, so that an end is looked for at any time
NEAR: Final = 100  # candidates that are looked at to name what is wrong
RECENT: Final = 20  # records of a partition that may have counted twice
NO_ORDER: Final = "no order of its inputs gives it for this key"
MOST_NAMED: Final = 10  # wrong outputs of a key; later ones are no news


class TooMany(Inconclusive):
    """A search has passed its bound, so nothing is known."""


class Stepped(NamedTuple):
    """The answer of a fold to a record.

    Attributes:
        state: The next state.
        text: The same in a form that compares.
        outputs: Key -> its outputs, in order.
    """

    state: Any
    text: bytes
    outputs: Mapping[bytes, tuple[Value, ...]]


Step = Callable[[Stepped, Record], Stepped]  # the answer before, the next record -> its answer


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A candidate: the records read of each partition, and the state they gave.

    Attributes:
        progress: How many records of each partition were read.
        answer: The answer to the record that was read last; its state is that of the node.
        record: The record that was read last.
        given: The outputs of the key that this record gave.
        rest: Those of them that are not visible yet.
        before: The node that it was reached from.
        steps_back: How often the key went back so far.
        number: The visible output that led to it; -1 if none did.
    """

    progress: Progress
    answer: Stepped
    record: Record | None = None
    given: tuple[Value, ...] = ()
    rest: tuple[Value, ...] = ()
    before: "Node | None" = None
    steps_back: int = 0
    number: int = -1

    @property
    def place(self) -> tuple[object, ...]:
        """The parts that tell it apart from other candidates."""
        return self.progress, self.answer.text, self.rest, self.steps_back

    @property
    def shown(self) -> Value | None:
        """The output that was visible last; None before the first one."""
        return self.shown_next if self.number >= 0 else None

    @property
    def shown_next(self) -> Value | None:
        """The last output of its record that is not left to be shown, if any."""
        count = len(self.given) - len(self.rest)
        return self.given[count - 1] if count else None

    @property
    def item(self) -> int:
        """The place of that output among those of its record."""
        return len(self.given) - len(self.rest) - 1


class Wrong(NamedTuple):
    """A legal state that is visible where it may not be.

    Attributes:
        name: The anomaly.
        said: What is wrong, after the key.
        due: The state that belongs there, if one does.
        number: The visible output.
    """

    name: str
    said: str
    due: State | None
    number: int


class Shown(NamedTuple):
    """The candidate that a visible output shows, or the anomaly of a foreign one."""

    node: Node | None
    foreign: Diagnosis | None = None


@dataclass(frozen=True)
class Interleavings:
    """The legal outputs of a fold of several inputs.

    Attributes:
        step: The fold.
        initial: Its first state, as the answer to nothing.
        partitions: Key of a state -> its records of each partition, in order.
        aborted: Key of a state -> its records that were aborted.
        owners: Key of an output -> the key of the state that gives it.
        states: Its states in the order of timestamps.
        has_other_keys: Whether a state gives outputs of another key than its own.
        may_skip: Whether outputs may be left out that a later one of their key replaces.
        walks: The walks so far, by the keys of outputs.
        answers: The answers of the fold so far, by its state and the place of the record.
    """

    step: Step
    initial: Stepped
    partitions: Mapping[str | None, Sequence[Sequence[Record]]]
    aborted: Mapping[str | None, Sequence[Record]]
    owners: Mapping[bytes, str | None]
    states: States
    has_other_keys: bool
    may_skip: bool
    walks: dict[bytes, "Walk"] = field(default_factory=dict)
    answers: dict[tuple[bytes, str, int, int], Stepped] = field(default_factory=dict)

    def walk(self, key: bytes, *, exactly_once: bool) -> "Walk":
        """Return the walk of a key, with the outputs that it was shown so far."""
        if key not in self.walks:
            self.walks[key] = Walk(self, key, exactly_once=exactly_once)
        return self.walks[key]

    def demand_known_keys(self) -> None:
        """Demand that no order of the inputs gives an output key that is not known.

        Raises:
            UsageProblem: One does, so that the model cannot be judged by.
            TooMany: There are too many orders.
        """
        if not self.has_other_keys:
            return
        for key, owner in self.owners.items():
            if any(len(records) for records in self.partitions[owner]):
                Walk(self, key, exactly_once=True).explore()

    @cached_property
    def _most_steps(self) -> int:
        records = sum(len(each) for own in self.partitions.values() for each in own)
        return max(LEAST_STEPS, MOST_STEPS * records)

    def answer(self, before: Stepped, record: Record) -> Stepped:
        """Return the answer of the fold to a record, each of which is asked for once.

        Raises:
            TooMany: The fold was asked too often.
        """
        asked = (before.text, record.topic, record.partition, record.offset)
        known = self.answers.get(asked)
        if known is None:
            if len(self.answers) >= self._most_steps:
                raise TooMany(
                    f"the interleavings of its inputs take more than {self._most_steps} steps of "
                    "the model"
                )
            known = self.answers[asked] = self.step(before, record)
        return known


class _Layer:
    """The candidates that have shown some outputs of a key, and not yet the next one.

    They are the `seeds`, which have just shown the last of them, and what becomes of these by
    records that give the key nothing.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.seeds: list[Node] = []
        self.found = deque[Node]()  # candidates for the next layer that wait to be taken
        self.furthest: Progress = ()  # the most records of each partition that a node here holds
        self.went_back = 0  # how many seeds there were when all orders before them were tried
        self._places = set[tuple[object, ...]]()
        self._waiting: list[tuple[int, int, int, Node, frozenset[int]]] = []

    def sow(self, seed: Node) -> bool:
        """Add a seed; return whether it is new here."""
        if seed.place in self._places:
            return False
        self.seeds.append(seed)
        return self.add(seed, frozenset())

    def add(self, node: Node, moved: frozenset[int]) -> bool:
        """Let a node wait; return whether it is new here.

        Nodes that are a few records of one partition away come first. Most outputs hang on those.

        Args:
            node: The node.
            moved: The partitions of which records were read since its seed.
        """
        if node.place in self._places:
            return False
        self._places.add(node.place)
        self.furthest = tuple(map(max, self.furthest or node.progress, node.progress))
        entry = (len(moved), sum(node.progress), len(self._places), node, moved)
        heappush(self._waiting, entry)
        return True

    def take(self) -> tuple[Node, frozenset[int]] | None:
        """Return the next node that waits."""
        if not self._waiting:
            return None
        *_, node, moved = heappop(self._waiting)
        return node, moved

    def restart(self) -> None:
        """Let the seeds wait as if no output had been looked for."""
        seeds = self.seeds
        self._begin()
        for seed in seeds:
            self.sow(seed)


class Walk:
    """The visible outputs of one key, and the candidates that may show them."""

    def __init__(self, of: Interleavings, key: bytes, *, exactly_once: bool) -> None:
        self.key = key
        self._of = of
        self._exactly_once = exactly_once
        is_known = key in of.owners
        self._partitions = of.partitions[of.owners[key]] if is_known else ()
        self._aborted = of.aborted.get(of.owners[key], ()) if is_known else ()
        self._root = Node((0,) * len(self._partitions), of.initial)
        self._begin()

    def _begin(self) -> None:
        """Forget what was visible."""
        self.wrong: list[Wrong] = []
        self.undecided = ""  # what bound was passed, if one was
        self._named = 0  # how often it was asked what is wrong
        self._fed: list[tuple[Value, int]] = []
        self._shown: list[Shown] = []
        # Each layer but the last one with the output that leads to the next, and its number.
        first = _Layer()
        first.sow(self._root)
        self._layers = [first]
        self._outputs: list[tuple[Value, int]] = []
        self._numbers: list[int] = []
        self._floor = 0  # earlier layers have led to all that they can lead to
        # Value -> candidates that were reached by it, also those that were not gone on from.
        self._known = defaultdict[Value, dict[tuple[object, ...], Node]](dict)
        self._ended: tuple[int, Node | None] | None = None

    @property
    def whole(self) -> Progress:
        """All records of each partition."""
        return tuple(map(len, self._partitions))

    def show(self, outputs: Sequence[tuple[Value, int]]) -> list[Shown]:
        """Return what each visible output is.

        Those that were shown before are not searched for again.

        Args:
            outputs: The values in their order, each with the number of interruptions before it.
        """
        if self._fed != list(outputs[: len(self._fed)]):
            self._begin()
        for value, interruptions in outputs[len(self._fed) :]:
            self._fed.append((value, interruptions))
            if self.undecided:
                continue
            try:
                self._shown.append(self._next(value, interruptions))
            except TooMany as bound:
                if not self._is_wrong:
                    self.undecided = str(bound)
                    continue
                self._named = MOST_NAMED  # it is wrong, whatever comes after it
                del self._outputs[-1], self._numbers[-1], self._layers[-1]
                self._shown.append(Shown(self._furthest))
        return self._shown

    def explore(self) -> None:
        """Go through all that some order of the inputs gives.

        Raises:
            TooMany: There is too much of it.
        """
        deque(self._onto(self._root, _Looked(), may_skip=True), maxlen=0)

    @property
    def _is_wrong(self) -> bool:
        """Whether something is wrong for certain."""
        return bool(self.wrong) or any(shown.foreign for shown in self._shown)

    def missing(self) -> list[State]:
        """Return the states that are due after the last visible output.

        Raises:
            TooMany: The search has passed its bound.
        """
        if self._end:
            return []
        try:
            if self._ends():
                return []
        except TooMany:
            if not self._is_wrong:
                raise
            return []
        try:
            return list(self._onwards(self._furthest))
        except TooMany:
            return self._unread(self._furthest)

    @property
    def has_ended(self) -> bool:
        """Whether the last visible output is known to be that of the whole input."""
        return bool(self.undecided) or self._end is not None

    @property
    def next_due(self) -> State | None:
        """The state after the last visible output, by the timestamps of the records."""
        return next(self._onwards(self._furthest), None)

    def holds(self, want: Progress, *, or_more: bool) -> bool:
        """Return whether the visible outputs may be those of a prefix of each partition.

        Args:
            want: The number of records of each partition.
            or_more: Whether they may be those of a longer prefix.

        Raises:
            TooMany: The search has passed its bound.
        """
        looked_at = _Looked()
        return any(
            self._towards(seed, want, looked_at, or_more=or_more) for seed in self._seeds(looked_at)
        )

    @property
    def progress(self) -> Progress:
        """How many records of each partition the last visible output holds."""
        return self._furthest.progress

    def below(self, offsets: Mapping[str, int]) -> Progress:
        """Count the records of each partition below committed offsets."""
        return tuple(
            sum(r.offset < offsets.get(f"{r.topic}-{r.partition}", 0) for r in records)
            for records in self._partitions
        )

    def last_records(self) -> Iterator[Record]:
        """Go through the last record of each partition that the last visible output holds."""
        for records, count in zip(self._partitions, self._furthest.progress, strict=True):
            if count:
                yield records[count - 1]

    def states(self) -> list[State]:
        """Return states of the key in an order that explains what is visible.

        They are those of the way to the last candidate. The states that are left are in the order
        of timestamps.
        """
        node = self._end or self._furthest
        return [*self._way(node), *self._unread(node)]

    def indexes(self, states: Sequence[State]) -> list[int]:
        """Return of each visible output the index of its state; -1 for what is none."""
        places = {
            (id(state.source), item): index
            for index, (state, item) in enumerate(zip(states, _items(states), strict=True))
        }
        last = self._end or self._furthest
        own = {node.number: node for node in _chain(last) if node.number >= 0}
        found = list[int]()
        for number, shown in enumerate(self._shown):
            node = own.get(number, shown.node)
            if shown.foreign or node is None:
                found.append(-1)
            else:
                found.append(places.get((id(node.record), node.item), 0))
        return found

    # --- the search

    def _next(self, value: Value, interruptions: int) -> Shown:
        """Go on to candidates that show the next output."""
        number = len(self._shown)
        if not self._partitions:
            self._of.demand_known_keys()
            return Shown(None, Diagnosis("phantom", "the model gives nothing for this key"))
        if self._named >= MOST_NAMED:
            return Shown(None, Diagnosis("phantom", "others before it are wrong, too"))
        self._outputs.append((value, interruptions))
        self._numbers.append(number)
        self._layers.append(_Layer())
        if self._search(_Looked()):
            return Shown(self._layers[-1].seeds[-1])
        del self._outputs[-1], self._numbers[-1], self._layers[-1]
        self._floor = len(self._layers) - 1
        self._named += 1
        self._layers[-1].restart()
        try:
            shown = self._misplaced(value, number) or self._foreign(value, number)
        except TooMany:  # it is wrong, and nobody knows by which mistake
            shown = Shown(None, Diagnosis("phantom", NO_ORDER))
        self._layers[-1].restart()
        return shown

    def _search(self, looked_at: "_Looked") -> bool:
        """Look for one more candidate that has shown all outputs; return whether there is one."""
        last = len(self._layers) - 1
        at = last - 1
        while self._floor <= at < last:
            found = self._match(at, looked_at)
            if found is None:
                at -= 1
            elif self._layers[at + 1].sow(replace(found, number=self._numbers[at])):
                at += 1
        return at == last

    def _seeds(self, looked_at: "_Looked") -> Iterator[Node]:
        """Go through all candidates that have just shown the last output."""
        count = 0
        while count < len(self._layers[-1].seeds) or self._search(looked_at):
            yield self._layers[-1].seeds[count]
            count += 1

    def _match(self, at: int, looked_at: "_Looked") -> Node | None:
        """Return one more candidate for the layer after this one; None if there is none left."""
        layer = self._layers[at]
        value, interruptions = self._outputs[at]
        while not layer.found:
            taken = layer.take()
            if taken is None:
                if not self._go_back(layer, interruptions, looked_at):
                    return None
                continue
            looked_at.count()
            node, moved = taken
            if not moved and not self._exactly_once:
                self._backward(layer, node, value, interruptions)
            self._forward(layer, node, moved, value)
        return layer.found.popleft()

    def _forward(self, layer: _Layer, node: Node, moved: frozenset[int], value: Value) -> None:
        """Look one record further than a node.

        What shows the value is found, and what shows nothing waits in the layer.
        """
        may_skip = self._of.may_skip
        self._note(layer, node, value)
        if node.rest and not may_skip:
            return
        for number, successor in self._successors(node):
            self._note(layer, successor, value)
            if may_skip or not successor.rest:
                layer.add(replace(successor, rest=()), moved | {number})

    def _note(self, layer: _Layer, node: Node, value: Value) -> None:
        """Note what a node shows next, and find it if that is the value."""
        for count in range(1, len(node.rest) + 1):
            after = replace(node, rest=node.rest[count:], before=node, number=-1)
            given = node.rest[count - 1]
            self._known[given].setdefault(after.place, after)
            if given == value:
                layer.found.append(after)
            if not self._of.may_skip:
                break

    def _backward(self, layer: _Layer, node: Node, value: Value, interruptions: int) -> None:
        """Find where a repeat, or a step back after an interruption, leads.

        A repeat right after itself is free. After an interruption the key goes on from where it was
        before.
        """
        if node.shown == value:
            layer.found.append(node)
        if node.steps_back < interruptions:
            known = self._known.get(value, {})
            layer.found += [replace(n, steps_back=node.steps_back + 1) for n in known.values()]

    def _go_back(self, layer: _Layer, interruptions: int, looked_at: "_Looked") -> bool:
        """Go on from all that any order gives of the records before an interruption.

        Returns:
            Whether there was an interruption that allows it, and this was not done before.
        """
        used = min((seed.steps_back for seed in layer.seeds), default=interruptions)
        if self._exactly_once or used >= interruptions or layer.went_back == len(layer.seeds):
            return False
        layer.went_back = len(layer.seeds)
        most = layer.furthest
        waiting = [self._root]
        last = frozenset(range(len(most) + 1))  # these are looked at after all others
        while waiting:
            node = waiting.pop()
            layer.add(replace(node, rest=(), steps_back=used + 1, number=-1), last)
            waiting += [n for _, n in self._successors(node, most) if looked_at.is_new(n)]
        return True

    def _onto(
        self, start: Node, looked_at: "_Looked", *, may_skip: bool, most: Progress | None = None
    ) -> Iterator[Node]:
        """Go through the nodes right after each output that may be the next one of the key.

        Args:
            start: The node to begin at.
            looked_at: What was looked at already.
            may_skip: Whether outputs before it may be left out.
            most: How many records of each partition may be read; None for all.

        Raises:
            TooMany: Too many nodes were looked at.
        """
        waiting = deque([start])
        while waiting:
            node = waiting.popleft()
            for count in range(1, len(node.rest) + 1):
                yield replace(node, rest=node.rest[count:], before=node, number=-1)
                if not may_skip:
                    break
            if may_skip or not node.rest:
                new = (n for _, n in self._successors(node, most) if looked_at.is_new(n))
                waiting.extend(new)

    def _successors(self, node: Node, most: Progress | None = None) -> Iterator[tuple[int, Node]]:
        """Go through what a node becomes by the next record of each partition."""
        for number, records in enumerate(self._partitions):
            count = node.progress[number]
            if count < (len(records) if most is None else most[number]):
                progress = (*node.progress[:number], count + 1, *node.progress[number + 1 :])
                yield number, self._read(node, records[count], progress)

    def _read(self, node: Node, record: Record, progress: Progress) -> Node:
        answer = self._of.answer(node.answer, record)
        given = answer.outputs.get(self.key, ())
        return Node(progress, answer, record, given, given, node, node.steps_back)

    def _towards(
        self, start: Node, want: Progress, looked_at: "_Looked", *, or_more: bool = False
    ) -> Node | None:
        """Return a node that holds just some records, reached by records that give nothing.

        Args:
            start: The node to begin at.
            want: The number of records of each partition.
            looked_at: What was looked at already.
            or_more: Whether it may hold more.
        """
        if start.rest:
            return start if or_more and is_ahead(_finished(start), want) else None
        most = tuple(map(max, start.progress, want)) if or_more else want
        if not is_ahead(most, start.progress):
            return None
        waiting = [start]
        while waiting:
            node = waiting.pop()
            if is_ahead(node.progress, want):
                return node
            waiting += [
                each
                for _, each in self._successors(node, most)
                if not each.given and looked_at.is_new(each)
            ]
        return None

    @property
    def _end(self) -> Node | None:
        """A candidate with the whole input that has shown all outputs; None if none is found.

        None is looked for while outputs are due, by the timestamps, and there are many candidates.
        """
        if self._ended is None or self._ended[0] != len(self._shown):
            node = self._furthest
            left = (all_ - read for all_, read in zip(self.whole, node.progress, strict=True))
            end: Node | None = None
            if prod(each + 1 for each in left) <= SMALL or not self._unread(node):
                with suppress(TooMany):
                    end = self._ends()
            self._ended = len(self._shown), end
        return self._ended[1]

    def _ends(self) -> Node | None:
        """Look for a candidate with the whole input that has shown all outputs.

        Raises:
            TooMany: The search has passed its bound.
        """
        looked_at = _Looked()
        ends = (self._towards(s, self.whole, looked_at) for s in self._seeds(looked_at))
        return next((node for node in ends if node), None)

    def _take(self, nodes: Iterable[Node], value: Value, number: int) -> Node:
        """Take nodes for the only candidates, and return one of them."""
        layer = _Layer()
        for node in nodes:
            layer.sow(replace(node, number=number))
        self._layers.append(layer)
        self._outputs.append((value, 0))
        self._numbers.append(number)
        self._floor = len(self._layers) - 1
        return layer.seeds[0]

    # --- what is wrong

    def _misplaced(self, value: Value, number: int) -> Shown | None:
        """Return what a legal state is that may not come now; None if it is no such state."""
        if known := self._known.get(value):
            node = next((n for n in self._come if n.shown == value), None)
            is_twice = node is not None and self._exactly_once
            node = node or next(iter(known.values()))
            state = self._state(node, value)
            if not self._exactly_once:
                said = "with no crash or rebalance to allow it"
                self.wrong.append(Wrong("reordered", f"steps back {said}", state, number))
                return Shown(self._take(known.values(), value, number))
            name = "duplicated" if is_twice else "reordered"
            said = "shows a state again" if is_twice else "shows a state after a later one"
            self.wrong.append(Wrong(name, said, state, number))
            return Shown(node)
        found = self._ahead(value)
        if not found:
            return None
        nearest = min(found, key=lambda node: sum(node.progress))
        near = [node for node in found if sum(node.progress) == sum(nearest.progress)]
        skipped = self._skipped(nearest)
        said = f"skips {len(skipped)} outputs"
        self.wrong.append(Wrong("lost", said, skipped[0] if skipped else None, number))
        return Shown(self._take(near, value, number))

    @property
    def _come(self) -> Iterator[Node]:
        """The candidates by which each visible output was explained so far."""
        return (shown.node for shown in self._shown if shown.node and not shown.foreign)

    def _ahead(self, value: Value) -> list[Node]:
        """Return where a value is due if outputs before it are left out."""
        looked_at = _Looked(NEAR, is_strict=False)
        found = list[Node]()
        for node in self._layers[-1].seeds:
            onto = self._onto(node, looked_at, may_skip=True)
            found += (after for after in onto if after.shown_next == value)
        return found

    def _skipped(self, node: Node) -> list[State]:
        """Return the states between the last candidate and a node, without that of the node."""
        chain = list[Node]()
        for each in _chain(node):
            if each.number >= 0 or each.before is None:
                break
            chain.append(each)
        found = [
            State(self.key, value, each.record, (), "")
            for each in reversed(chain)
            if each.record and each.before and each.progress != each.before.progress
            for value in each.given
        ]
        return found[: max(0, len(found) - len(node.rest) - 1)]

    def _foreign(self, value: Value, number: int) -> Shown:
        """Name what no interleaving gives by the mistake that would give just this."""
        due = self._nearest(value)
        for node in self._layers[-1].seeds[:RECENT]:
            for mistake in self._mistakes(node):
                onto = self._onto(mistake.node, _Looked(NEAR, is_strict=False), may_skip=False)
                after = next((each for each in onto if each.shown_next == value), None)
                if after:
                    self._take([after], value, number)
                    why = f"it is right only if {mistake.why}"
                    return Shown(None, Diagnosis(mistake.name, why, mistake.blamed))
        return Shown(None, Diagnosis("phantom", NO_ORDER, due.source if due else None, due))

    def _nearest(self, value: Value) -> State | None:
        """Return the state that may come next and has the most fields in common with a value."""
        looked_at = _Looked(NEAR, is_strict=False)
        may_come = [
            State(self.key, after.shown_next, after.record, (), "")
            for node in self._layers[-1].seeds
            for after in self._onto(node, looked_at, may_skip=False)
            if after.shown_next and after.record
        ]
        fields = fields_of(value)
        return max(may_come, key=lambda state: len(fields & fields_of(state.value)), default=None)

    def _mistakes(self, node: Node) -> Iterator["_Mistake"]:
        """Go through the mistakes that a key may have made, the likely ones first."""
        for record in self._aborted:
            counted = self._read(node, record, node.progress)
            why = f"what was aborted counts, as {record.at}"
            yield _Mistake("uncommitted-visible", why, record, counted)
        for number, records in enumerate(self._partitions):
            count = node.progress[number]
            for record in reversed(records[max(0, count - RECENT) : count]):
                twice = self._read(node, record, node.progress)
                yield _Mistake("duplicated", f"{record.at} counts twice", record, twice)
            if count < len(records):
                record = records[count]
                passed = (*node.progress[:number], count + 1, *node.progress[number + 1 :])
                without = replace(node, progress=passed, before=node, given=(), rest=())
                yield _Mistake("lost", f"{record.at} does not count", record, without)
                anew = replace(self._read(self._root, record, passed), before=node)
                yield _Mistake("lost", f"nothing before {record.at} counts", record, anew)

    # --- ways

    @property
    def _furthest(self) -> Node:
        return max(self._layers[-1].seeds, key=lambda node: sum(node.progress))

    def _way(self, node: Node) -> Iterator[State]:
        """Go through the states on the way to a node."""
        for each in reversed(list(_chain(node))):
            is_read = each.before is not None and each.progress != each.before.progress
            if is_read and each.record:
                for value in each.given:
                    yield State(self.key, value, each.record, (), "")

    def _unread(self, node: Node) -> list[State]:
        """Return the states in the order of timestamps whose records a node does not hold."""
        read = {
            id(record)
            for records, count in zip(self._partitions, node.progress, strict=True)
            for record in records[:count]
        }
        return [s for s in self._of.states.get(self.key, ()) if id(s.source) not in read]

    def _onwards(self, node: Node) -> Iterator[State]:
        """Go through the states that are due after a node, by the timestamps of their records."""
        for value in node.rest:
            if node.record:
                yield State(self.key, value, node.record, (), "")
        while True:
            successors = [each for _, each in self._successors(node)]
            if not successors:
                return
            node = min(successors, key=lambda each: _moment(each.record))
            for value in node.given:
                assert node.record
                yield State(self.key, value, node.record, (), "")

    def _state(self, node: Node, value: Value) -> State | None:
        return State(self.key, value, node.record, (), "") if node.record else None


class _Mistake(NamedTuple):
    """A mistake that a key may have made, and where it leads.

    Attributes:
        name: The anomaly.
        why: What it is, after “it is right only if”.
        blamed: The input record that it is about.
        node: The candidate after it.
    """

    name: str
    why: str
    blamed: Record
    node: Node


class _Looked:
    """The nodes that a search has looked at."""

    def __init__(self, most: int | None = None, *, is_strict: bool = True) -> None:
        self._most = MOST_CANDIDATES if most is None else most
        self._is_strict = is_strict
        self._count = 0
        self._places = set[tuple[object, ...]]()

    def is_new(self, node: Node) -> bool:
        """Return whether a node was not looked at yet, and may be.

        Raises:
            TooMany: More nodes were looked at than may be, and that counts.
        """
        if node.place in self._places or (self._count >= self._most and not self._is_strict):
            return False
        self.count()
        self._places.add(node.place)
        return True

    def count(self) -> None:
        """Count a node.

        Raises:
            TooMany: It is one too many.
        """
        self._count += 1
        if self._count > self._most:
            raise TooMany(
                f"the interleavings of its inputs give more than {self._most} candidate states for "
                "an output"
            )


def is_ahead(progress: Iterable[int], other: Iterable[int]) -> bool:
    """Return whether this progress holds all that the other one does."""
    return all(own >= its for own, its in zip(progress, other, strict=True))


@lru_cache(maxsize=1 << 14)
def fields_of(value: Value) -> frozenset[str]:
    """Return the fields of a value, each with what it says."""
    with suppress(ValueError, AttributeError):
        table = loaded(str(value[0]))
        return frozenset(json.dumps(field, sort_keys=True) for field in table.items())
    return frozenset()


def _finished(node: Node) -> Progress:
    """Return the records whose outputs are all visible."""
    if not node.rest or node.before is None:
        return node.progress
    start = next((each for each in _chain(node) if each.progress != node.progress), node)
    return start.progress


def _chain(node: Node | None) -> Iterator[Node]:
    """Go from a node back to the first one."""
    while node is not None:
        yield node
        node = node.before


def _items(states: Iterable[State]) -> Iterator[int]:
    """Go through the place of each state among those of its record."""
    counts = defaultdict[int, int](int)
    for state in states:
        yield counts[id(state.source)]
        counts[id(state.source)] += 1


def _moment(record: Record | None) -> tuple[int, str, int, int]:
    assert record
    return record.timestamp_ms, record.topic, record.partition, record.offset


def in_order_of_time(records: Iterable[Record]) -> list[Record]:
    """Return records by their timestamps, and those of each partition in their order."""
    partitions = defaultdict[tuple[str, int], list[Record]](list)
    for record in records:
        partitions[record.topic, record.partition].append(record)
    waiting = [sorted(each, key=lambda r: r.offset)[::-1] for each in partitions.values()]
    found = list[Record]()
    while waiting:
        first = min(waiting, key=lambda each: _moment(each[-1]))
        found.append(first.pop())
        waiting = [each for each in waiting if each]
    return found


class _Shared(NamedTuple):
    """How far each lane of a key is, and how the outputs so far were shared out."""

    positions: tuple[int, ...]
    steps_back: tuple[int, ...]


def shared_out(
    lanes: Sequence[Sequence[Value]],
    outputs: Sequence[tuple[Value, int]],
    *,
    exactly_once: bool,
    is_end: Callable[[Sequence[int]], bool] = lambda _: True,
) -> list[int] | None:
    """Return the lane that each visible output of a key belongs to.

    Args:
        lanes: The due outputs of each lane, in order.
        outputs: The visible values in order, with the number of interruptions before each.
        exactly_once: Whether no output may come again.
        is_end: Whether the lanes may have shown these outputs last, by their numbers; -1 is none.

    Returns:
        The numbers of the lanes; None if no way to share them out is legal.

    Raises:
        TooMany: There are too many ways.
    """
    start = _Shared((-1,) * len(lanes), (0,) * len(lanes))
    ways: list[dict[_Shared, tuple[_Shared, int]]] = [{start: (start, -1)}]
    for value, interruptions in outputs:
        after: dict[_Shared, tuple[_Shared, int]] = {}
        for way in ways[-1]:
            for lane, due in enumerate(lanes):
                steps_left = 0 if exactly_once else interruptions - way.steps_back[lane]
                for position in _positions(due, way.positions[lane], value, exactly_once):
                    is_back = position < way.positions[lane]
                    if is_back and not steps_left > 0:
                        continue
                    new = _Shared(
                        _with(way.positions, lane, position),
                        _with(way.steps_back, lane, way.steps_back[lane] + is_back),
                    )
                    after.setdefault(new, (way, lane))
        if len(after) > MOST_CANDIDATES:
            raise TooMany(
                f"outputs of several inputs are alike, and may be shared out among them in more "
                f"than {MOST_CANDIDATES} ways"
            )
        if not after:
            return None
        ways.append(after)
    found = list[int]()
    ends = [each for each in ways[-1] if is_end(each.positions)]
    if not ends:
        return None
    way = ends[0]
    for step in reversed(ways[1:]):
        way, lane = step[way]
        found.append(lane)
    return found[::-1]


def _positions(
    due: Sequence[Value], position: int, value: Value, exactly_once: bool
) -> Iterator[int]:
    """Go through the positions at which a lane may be after it has shown a value."""
    if position + 1 < len(due) and due[position + 1] == value:
        yield position + 1
    if not exactly_once:
        yield from (back for back in range(position + 1) if due[back] == value)


def _with(numbers: tuple[int, ...], place: int, number: int) -> tuple[int, ...]:
    return (*numbers[:place], number, *numbers[place + 1 :])
