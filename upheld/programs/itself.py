"""An application that is its own oracle.

Right is whatever it gives in a run without a fault. The application is run once more on the same
input, on topics of its own, and nothing strikes it. Its outputs are the states of each key, in
their order. Two such runs show what differs without any fault. Of such fields only the type is
compared.

The numbers of outputs may differ, and a fold may show only some of its states, unless it declares
that it emits every state. Then the last value of each key is compared alone. The values before it
are any that it likes. If a number in them increases with each state of a key, it says what came
twice, and what came after a later state.

This finds what a fault changes: loss, duplicates, wrong order, state that was not restored. It
cannot see wrong logic, nor a fault that the runs without a fault have too.

The prefix rule needs to know which input a state comes from. If each key has as many outputs as
inputs, the n-th output is taken for that of the n-th input. Otherwise the application is run once
more, on the committed input alone.

Outputs may have an identity, a field by which they are told apart. Then each of them is a key of
its own, so that their order is not compared. If the input has the same identity, it says which
output comes of which input.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from hashlib import sha256
from itertools import repeat
from types import NoneType, UnionType
from typing import Any, Final, NamedTuple

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError

from upheld.generators.envelope_pb2 import Envelope
from upheld.history import History
from upheld.history.events import Answered, Application, Contract, Record
from upheld.history.outputs import by_output
from upheld.programs.contract import (
    GONE,
    Diagnose,
    Diagnosis,
    Program,
    State,
    States,
    Unreadable,
    Value,
    no_lineage,
)
from upheld.protocol.json_path import MISSING, JsonPath, step
from upheld.reading import loaded
from upheld.verdicts import NotOffered

UNTRACED: Final = (
    "its keys have more or fewer outputs than inputs, so that nobody can say which outputs a "
    "committed offset covers"
)
_MASKED: Final = "…"
BETWEEN: Final = b" \xc2\xb7 "  # a middle dot, between the key and the identity of an output
_ANOTHER: Final = ("a value", "before the last one")  # no output has it: a value has one part
_TYPES: Final[dict[type | UnionType, str]] = {  # a bool is an int, too, and comes first
    bool: "boolean",
    int | float: "number",
    str: "string",
    NoneType: "null",
    list: "array",
    dict: "object",
}
Outputs = dict[bytes, list[bytes | None]]  # key -> its values, in order
Sources = dict[bytes, list[Record]]  # key -> the input of each of its outputs, in order
Unique = Mapping[str, str]  # topic -> the path of a field by which its records are told apart
# Path of an unstable field -> the JSON types that it may have; None if nobody noted them.
Types = Mapping[str, frozenset[str] | None]


class Difference(NamedTuple):
    """The difference between two runs without a fault."""

    unstable: tuple[str, ...]  # the fields, as paths
    is_ordered: bool  # whether each key has as many outputs in both
    is_by_last_value: bool = False  # whether the last values of all keys can be compared instead
    types: tuple[tuple[str, ...], ...] = ()  # of each unstable field, in both runs


def digest_of(inputs: Iterable[Record], topics: Sequence[str] = ()) -> str:
    """Return the digest of visible input records, wherever they lie in the log.

    Args:
        inputs: The records.
        topics: The topics that they lie in, if there are several.
    """
    found = sha256()
    numbers = {topic: number for number, topic in enumerate(topics)} if len(topics) > 1 else {}
    order = [(numbers.get(each.topic, 0), each.partition, each.offset, each) for each in inputs]
    for number, _, _, record in sorted(order, key=lambda each: each[:3]):
        place = (number, record.partition) if numbers else (record.partition,)
        found.update(repr((*place, record.key, record.value, record.headers)).encode())
    return found.hexdigest()


def by_key(contract: Contract, records: Iterable[Record]) -> Outputs:
    """Return the values of each key, in the order of the log."""
    found: Outputs = defaultdict(list)
    for record in records:
        found[key_of(contract, record)].append(record.value)
    return dict(found)


def key_of(contract: Contract, record: Record) -> bytes:
    """Return the key of an output, with its identity if outputs have one."""
    key = record.key or b""
    if contract.identity is None:
        return key
    return BETWEEN.join((key, _field(contract.identity, record.value)))


def _field(path: str, value: bytes | None) -> bytes:
    """Return a field of a JSON value as text; empty if there is none."""
    try:
        found = _path(path).found(loaded(value)) if value is not None else MISSING
    except ValueError:
        return b""
    if found is MISSING:
        return b""
    return (found if isinstance(found, str) else json.dumps(found, sort_keys=True)).encode()


@lru_cache
def _path(text: str) -> JsonPath:
    return JsonPath.read(text)


def difference(
    contract: Contract, first: Outputs, second: Outputs, *, may_skip: bool = False
) -> Difference:
    """Compare two runs on one input.

    They show which fields are unstable, and whether the outputs of a key can be compared in order.
    If not, they show whether the last value of each key can be compared alone.

    Args:
        contract: The contract of the output.
        first: The values of each key in one run.
        second: Those in the other run.
        may_skip: Whether outputs may skip states. Then two runs may show different states of a key,
            and as many: their fields are none that differ without a reason.
    """
    unstable = None if may_skip else _unstable(contract, first, second)
    is_ordered = unstable is not None
    if unstable is None:
        unstable = _unstable(contract, _last_alone(first), _last_alone(second))
    is_by_last_value = not is_ordered and unstable is not None
    values = [_read(contract, v) for run in (first, second) for each in run.values() for v in each]
    types = tuple(_types_of(name, values) for name in unstable or ())
    return Difference(unstable or (), is_ordered, is_by_last_value, types)


def _types_of(name: str, values: Iterable[object]) -> tuple[str, ...]:
    """Return the JSON types that a field has in some values; empty if it is not always there."""
    path = JsonPath.read(name)
    return tuple(sorted({_type_of(path.found(value)) for value in values if value is not None}))


def _last_alone(outputs: Outputs) -> Outputs:
    """Return the last value of each key."""
    return {key: values[-1:] for key, values in outputs.items()}


def _unstable(contract: Contract, first: Outputs, second: Outputs) -> tuple[str, ...] | None:
    """Return the fields that differ; None if the outputs have nothing in common to compare."""
    counts = [{key: len(values) for key, values in each.items()} for each in (first, second)]
    if counts[0] != counts[1]:
        return None
    if contract.format == "bytes":
        return () if first == second else None
    unstable = set[str]()
    for key, values in first.items():
        for one, other in zip(values, second[key], strict=True):
            if one != other:
                read = partial(_read, contract)
                unstable |= set(_differing(read(one), read(other), "$"))
    return None if "$" in unstable else tuple(sorted(unstable))


def below(offsets: Mapping[str, int], inputs: Iterable[Record]) -> list[Record]:
    """Return the visible records below the offsets of their partitions."""
    return [
        r for r in inputs if r.visible and r.offset < offsets.get(f"{r.topic}-{r.partition}", 0)
    ]


def is_traced(
    contract: Contract, unique: Unique, inputs: Iterable[Record], outputs: Iterable[Record]
) -> bool:
    """Return whether it is known which input each output comes of."""
    visible = [record for record in inputs if record.visible]
    return _sources(contract, unique, visible, list(outputs)) is not None


def unique_of(application: Application) -> Unique:
    """Return the paths by which records of inputs are told apart, by topic."""
    assert application.contract
    return {application.topics[role]: path for role, path in application.contract.unique.items()}


def is_in_one_partition(contract: Contract, outputs: Iterable[Record]) -> bool:
    """Return whether each key lies in one partition: one output is the last there."""
    partitions = defaultdict[bytes, set[int]](set)
    for record in outputs:
        partitions[key_of(contract, record)].add(record.partition)
    return all(len(found) == 1 for found in partitions.values())


def _differing(one: object, other: object, path: str) -> Iterator[str]:
    """Go through the paths of the fields that differ."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for name in one:
            yield from _differing(one[name], other[name], f"{path}{step(name)}")
    elif one != other:
        yield path


def _read(contract: Contract, value: bytes | None) -> Any:
    if value is None:
        return None
    try:
        return _decoded(contract, value)
    except ValueError:
        return value


def _decoded(contract: Contract, value: bytes) -> Any:
    """Return a value as JSON has it; an envelope of a shipped program by its fields.

    Raises:
        ValueError: It is of another format.
    """
    if contract.format != "envelope":
        return loaded(value)
    try:
        return MessageToDict(Envelope.FromString(value), preserving_proto_field_name=True)
    except DecodeError as error:
        raise ValueError(str(error)) from None


def program_of(history: History, application: Application) -> Program:
    """Return the program of an application whose answers are in its history."""
    contract = application.contract
    assert contract
    oracle = Itself(history, application.name, contract)
    return program(contract, oracle)


def program(contract: Contract, oracle: "Itself | None" = None) -> Program:
    """Return the program of a contract; without an oracle it has roles and no model."""
    return Program(
        name=contract.name,
        reads=contract.reads,
        others=contract.also_reads,
        writes=contract.writes,
        further=contract.roles[1:],
        conflates=bool(oracle and oracle.is_last_alone),
        is_last_alone=bool(oracle and oracle.is_last_alone),
        parameters={"commit_interval_ms": 100},
        model=oracle.model if oracle else _no_model,
        value_of=oracle.value_of if oracle else partial(value_of, contract, {}),
        lineage_of=no_lineage,
        diagnosis=oracle.diagnosis if oracle else _no_diagnosis,
        key_of=partial(key_of, contract),
        rank_of=partial(rank_of, contract.increasing) if contract.increasing else None,
    )


def _no_model(_: Iterable[Record]) -> States:
    raise NotOffered("the application was not run on this input without a fault")


def _no_diagnosis(_: list[Record]) -> Diagnose:
    return lambda _key, _value, _states: Diagnosis("phantom", "there is no answer to compare with")


def value_of(contract: Contract, unstable: Types, record: Record) -> Value:
    """Return the value of an output without the fields that are not compared.

    An unstable field stays if it has another type than without a fault.

    Raises:
        Unreadable: It is no JSON, and JSON was declared.
    """
    if record.value is None:
        return GONE
    if contract.format == "bytes":
        return (record.value.decode(errors="backslashreplace"),)
    try:
        value = _decoded(contract, record.value)
    except ValueError:
        raise Unreadable(
            f"{record.at} is no JSON, and the output is declared as {contract.format}"
        ) from None
    for path in map(JsonPath.read, contract.ignore):
        if path.found(value) is not MISSING:
            value = path.replaced(value, _MASKED)
    for name, types in unstable.items():
        path = JsonPath.read(name)
        found = path.found(value)
        if found is not MISSING and (types is None or _type_of(found) in types):
            value = path.replaced(value, _MASKED)
    return (json.dumps(value, sort_keys=True, ensure_ascii=False),)


def rank_of(path: str, shown: Record | Value) -> float | None:
    """Return the number at a path of an output, or of a state; None if there is none.

    A state has none if two runs without a fault give other numbers.
    """
    value = shown.value if isinstance(shown, Record) else str(shown[0]).encode()
    try:
        found = _path(path).found(loaded(value or b""))
    except ValueError:
        return None
    return found if isinstance(found, int | float) and not isinstance(found, bool) else None


def _type_of(value: object) -> str:
    """Return the JSON type of a value; empty if there is none."""
    return next((name for kind, name in _TYPES.items() if isinstance(value, kind)), "")


class Itself:
    """The answers of an application to its own inputs, as a history has them.

    They are those of one output: the first one of its contract.
    """

    def __init__(self, history: History, application: str, contract: Contract) -> None:
        self.history = history
        self.application = application
        self.contract = contract
        self._types = (0, dict[str, frozenset[str] | None]())  # of so many answers

    def answers(self) -> Iterator[Answered]:
        """Go through the answers of runs without a fault for its output, in order."""
        own = {"", self.contract.writes}
        answers = (a for a in self.history.of(Answered) if a.application == self.application)
        return (answer for answer in answers if answer.output in own)

    def answer_to(self, inputs: Iterable[Record]) -> Answered | None:
        """Return the run on just these inputs, if there was one."""
        digest = digest_of(inputs, self._topics)
        return next((each for each in self.answers() if each.inputs == digest), None)

    @property
    def _topics(self) -> tuple[str, ...]:
        """The topics that it reads."""
        event = self.history.application(self.application)
        return tuple(event.topics[role] for role in self.contract.inputs)

    @property
    def _unique(self) -> Unique:
        return unique_of(self.history.application(self.application))

    def _outputs(self, answer: Answered) -> list[Record]:
        """Return what a run without a fault wrote, in the order of the log."""
        outputs = (r for r in self.history.of(Record) if r.topic == answer.outputs)
        return sorted(outputs, key=lambda each: (each.partition, each.offset))

    def model(self, inputs: Iterable[Record]) -> States:
        """Return the states of each key: the outputs of the run on just these inputs.

        Nothing comes of records that were aborted.

        Raises:
            NotOffered: There was no such run, or two of them have nothing in common; or it folds,
                and shows only some of its states, and its last values are not compared.
        """
        records = list(inputs)
        if not any(record.visible for record in records):
            return {}
        answer = self.answer_to(records)
        if answer is None:
            return _no_model(records)
        outputs = self._outputs(answer)
        if self.is_last_alone:
            self._demand_increase(outputs)
            return self._last(outputs, records)
        if not answer.is_ordered:
            raise NotOffered(
                "two runs without a fault gave different numbers of outputs, or outputs with "
                "nothing in common"
            )
        sources = _sources(self.contract, self._unique, records, outputs)
        may_skip = self.contract.shape == "fold" and self.history.begun.emits is None
        if may_skip and sources is None:
            raise NotOffered(
                "its keys have more or fewer outputs than inputs, so that after a fault it may "
                "skip other states than without one"
            )
        return self._states(outputs, sources, records[-1])

    def _demand_increase(self, outputs: list[Record]) -> None:
        """Demand that what is declared to increase does so without a fault.

        A tombstone ends the states of its key, and others may begin anew.

        Raises:
            NotOffered: An output of a key has no such number, or none above that of the one before.
        """
        path = self.contract.increasing
        if path is None:
            return
        last: dict[bytes, float] = {}
        for record in outputs:
            key = record.key or b""
            before = last.pop(key, None)
            if record.value is None:
                continue
            rank = rank_of(path, record)
            if rank is None or (before is not None and rank <= before):
                found = "no number" if rank is None else f"{rank}"
                after = "" if before is None else f" after {before}"
                whose = key.decode(errors="backslashreplace") or "an output without a key"
                raise NotOffered(
                    f"`increasing` is {path}, and without a fault it is {found} for {whose}{after}"
                )
            last[key] = rank

    def _last(self, outputs: list[Record], inputs: list[Record]) -> States:
        """Return one state for all values of a key but the last one, and that one.

        Each is of the last input with that key, or of the last one if no input has it.
        """
        sources = {record.key or b"": record for record in inputs}
        states: States = {}
        for record in outputs:
            key = key_of(self.contract, record)
            source = sources.get(record.key or b"", inputs[-1])
            before = State(key, _ANOTHER, source, (), "")
            states[key] = [before, State(key, self.value_of(record), source, (), "")]
        return states

    def _states(self, outputs: list[Record], sources: Sources | None, last: Record) -> States:
        """Return the states that outputs show; without sources each is of the last record."""
        numbers = Counter[bytes]()
        states = defaultdict[bytes, list[State]](list)
        for record in outputs:
            key = key_of(self.contract, record)
            source = sources[key][numbers[key]] if sources else last
            numbers[key] += 1
            states[key].append(State(key, self.value_of(record), source, (), ""))
        return dict(states)

    def values(self, inputs: list[Record]) -> dict[bytes, list[Value]]:
        """Return the values of each key that come of just these inputs, in their order.

        Raises:
            NotOffered: The application was not run on them.
        """
        if not inputs:
            return {}
        answer = self.answer_to(inputs)
        if answer is None:
            raise NotOffered(UNTRACED)
        found = defaultdict[bytes, list[Value]](list)
        for record in self._outputs(answer):
            found[key_of(self.contract, record)].append(self.value_of(record))
        return dict(found)

    def ranks(self, inputs: list[Record]) -> dict[bytes, tuple[float, Record]]:
        """Return the last output that comes of just these inputs, and its number, by key.

        The number increases with each state.

        Raises:
            NotOffered: The application was not run on them, or two runs give other numbers.
        """
        path = self.contract.increasing
        if not inputs:
            return {}
        answer = self.answer_to(inputs)
        if answer is None or path is None or path in self.unstable():
            raise NotOffered(UNTRACED)
        last = {record.key or b"": record for record in self._outputs(answer)}
        ranks = {key: (rank_of(path, record), record) for key, record in last.items()}
        return {key: (rank, record) for key, (rank, record) in ranks.items() if rank is not None}

    @property
    def is_last_alone(self) -> bool:
        """Whether the last value of each key is all that is compared."""
        return any(answer.is_by_last_value for answer in self.answers())

    @property
    def is_traced(self) -> bool:
        """Whether it is known which input each output comes of.

        The identity of an output says it; or its key has as many outputs as inputs.
        """
        if self.is_last_alone:
            return False
        last = list(self.answers())[-1]
        topics = self._topics
        inputs = (record for record in self.history.of(Record) if record.topic in topics)
        return is_traced(self.contract, self._unique, inputs, self._outputs(last))

    def value_of(self, record: Record) -> Value:
        """Return the value of an output without the fields that are not compared."""
        known = self.history.count(Answered)
        if self._types[0] != known:
            self._types = (known, self.unstable())
        return value_of(self.contract, self._types[1], record)

    def unstable(self) -> dict[str, frozenset[str] | None]:
        """Return the unstable fields, each with the types that it has without a fault."""
        found: dict[str, frozenset[str] | None] = {}
        for answer in self.answers():
            types = map(frozenset, answer.types) if answer.types else repeat(None)
            found |= zip(answer.unstable, types, strict=False)
        return found

    def diagnosis(self, inputs: list[Record]) -> Diagnose:
        """Return a function that names the anomaly of an output that no right run gives."""
        unique = self._unique if self.contract.identity is not None else {}

        def named(record: Record) -> bytes:
            path = unique.get(record.topic)
            return record.key or b"" if path is None else _field(path, record.value)

        visible = {named(record) for record in inputs if record.visible}
        aborted = {named(record): record for record in inputs if not record.visible}

        def diagnose(key: bytes, _: Value, states: list[State]) -> Diagnosis:
            if self.contract.identity is not None:
                key = key.split(BETWEEN)[-1 if unique else 0]
            if not states and key in aborted and key not in visible:
                why = "all that was written for this key was aborted"
                return Diagnosis("uncommitted-visible", why, aborted[key])
            if not states:
                return Diagnosis("phantom", "without a fault the application says nothing of it")
            return Diagnosis("phantom", "without a fault the application never says this of it")

        return diagnose


def oracles_of(history: History, application: Application) -> Iterator[Itself]:
    """Go through the answers for each output of an application, in their order.

    There are none if a model or a shipped program says what is right.
    """
    contract = application.contract
    if contract is None or contract.model:
        return
    for own, each in zip(contract.outputs, by_output(history, application.name), strict=True):
        yield Itself(each, application.name, own)


def _sources(
    contract: Contract, unique: Unique, inputs: list[Record], outputs: list[Record]
) -> Sources | None:
    """Return the input of each output of each key; None if nobody knows.

    The identity of outputs is that of the input, or each key has as many of both. Records of
    several topics have no mutual order.
    """
    if contract.identity is not None:
        return _sources_by_identity(contract, unique, inputs, outputs)
    if contract.also_reads:
        return None
    found = defaultdict[bytes, list[Record]](list)
    for record in sorted(inputs, key=lambda each: (each.partition, each.offset)):
        found[record.key or b""].append(record)
    counts = Counter(record.key or b"" for record in outputs)
    return found if counts == {key: len(each) for key, each in found.items()} else None


def _sources_by_identity(
    contract: Contract, unique: Unique, inputs: list[Record], outputs: list[Record]
) -> Sources | None:
    """Return the input with the identity of each output; None if one of them has no such input."""
    assert contract.identity
    told = (record for record in inputs if record.topic in unique)
    known = {_field(unique[record.topic], record.value): record for record in told}
    found = defaultdict[bytes, list[Record]](list)
    for record in outputs:
        source = known.get(_field(contract.identity, record.value))
        if source is None:
            return None
        found[key_of(contract, record)].append(source)
    return found
