"""An application with a model that a user wrote, as `upheld.models` describes it.

The model is folded over the input log. Every output that it gives is a state of its key, with the
record that it came from. So the prefix rule is exact, whatever the number of outputs.

If there is one input, all outputs of a key come from one partition of it. Between two partitions
there is no order that a model could follow. If there are several inputs, the outputs are those of
some interleaving of their partitions (`interleavings`). A model is checked while it is folded. A
fault of it is said in one sentence, which names the record.

A contract has one output or several. The states are those of its first output.
"""

import json
import reprlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, NoReturn

from upheld import models
from upheld.errors import UsageProblem
from upheld.guesses import did_you_mean
from upheld.history import History
from upheld.history.events import Application, Contract, FurtherOutput, ModelFile, Record
from upheld.programs import itself
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
from upheld.programs.interleavings import (
    Interleavings,
    Stepped,
    TooMany,
    fields_of,
    in_order_of_time,
    shared_out,
)
from upheld.protocol.json_path import JsonPath
from upheld.protocol.manifest import Manifest
from upheld.protocol.model_file import READS, Loaded, models_in
from upheld.protocol.subject import Subject
from upheld.reading import loaded
from upheld.text import visible

SAID_CHARS: Final = 200  # of what a model raised or gave
# The programs of one input and one output, and the formats of their outputs.
WRITTEN: Final[Mapping[str, Literal["json", "envelope"]]] = {"relay": "envelope", "ledger": "json"}
# The fields of their outputs that increase with each state of a key.
INCREASING: Final[Mapping[str, str]] = {"ledger": "$.postings"}
MOST_TRIED: Final = 20_000  # steps of a model, to name what is wrong with the outputs of a row

_REPR: Final = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = SAID_CHARS
_REPR.maxdict = _REPR.maxlist = 20
# The digest of a file and the name in it -> a model that this process has loaded.
_KNOWN: Final[dict[tuple[str, str], Loaded]] = {}


def offer(model: Loaded) -> None:
    """Let histories that name a model be judged by it."""
    _KNOWN[_named(model.sha256, model.place)] = model


def offer_all(file: Path) -> None:
    """Let histories be judged by the models of a file.

    Raises:
        UsageProblem: It cannot be run, or has no model.
    """
    for model in models_in(file, where="--model"):
        offer(model)


def _named(sha256: str, place: str) -> tuple[str, str]:
    return sha256, place.rpartition(":")[2]


def program_of(history: History, application: Application) -> Program:
    """Return the program of an application that is judged by its own contract.

    Raises:
        UsageProblem: Its model is not known in this process.
    """
    contract = application.contract
    assert contract
    if contract.model is None:
        return itself.program_of(history, application)
    return program(contract, application.topics)


def program(contract: Contract, topics: Mapping[str, str] | None = None) -> Program:
    """Return the program of a contract with or without a model.

    Without a model it has roles, and nothing that says what is right.

    Args:
        contract: The contract.
        topics: Role -> topic; None where a topic is called as its role.
    """
    if contract.model is None:
        return itself.program(contract)
    model = _known(contract)
    roles = {topic: role for role, topic in (topics or {}).items()}
    modelled = Modelled(contract, model, roles)
    is_fold = isinstance(model.model, models.Fold)
    return Program(
        name=contract.name,
        reads=contract.reads,
        others=contract.also_reads,
        writes=contract.writes,
        further=contract.roles[1:],
        conflates=getattr(model.model, "may_skip", False),
        parameters={"commit_interval_ms": 100},
        model=modelled.states,
        value_of=partial(value_of, contract),
        lineage_of=no_lineage,
        diagnosis=modelled.diagnosis,
        interleaved=modelled.interleavings if contract.also_reads and is_fold else None,
        is_shared_out=bool(contract.also_reads) and not is_fold,
    )


def value_of(contract: Contract, record: Record) -> Value:
    """Return the value of an output without the fields that are not compared.

    A model need not give such a field: it is taken out, and not masked.

    Raises:
        Unreadable: It is no JSON, and JSON was declared.
    """
    if record.value is None:
        return GONE
    if contract.format == "bytes":
        return (record.value.decode(errors="backslashreplace"),)
    try:
        value = loaded(record.value)
    except ValueError:
        raise Unreadable(f"{record.at} is no JSON, and the output is declared as json") from None
    for path in contract.ignore:
        JsonPath.read(path).take_out(value)
    return (json.dumps(value, sort_keys=True, ensure_ascii=False),)


def _known(contract: Contract) -> Loaded:
    assert contract.model
    wanted = contract.model
    if found := _KNOWN.get(_named(wanted.sha256, wanted.place)):
        return found
    raise UsageProblem(
        f"the application was judged by the model {wanted.place}, which this process has not loaded"
    )


def demand_model(history: History) -> None:
    """Demand that the models which a history names are known.

    Raises:
        UsageProblem: One is not, or the file that was named is another one than then.
    """
    for application in history.of(Application):
        if application.contract and (wanted := application.contract.model):
            if _named(wanted.sha256, wanted.place) in _KNOWN:
                continue
            copy = f"{copy_name(wanted.place, wanted.sha256)} in the folder models of its run"
            name = wanted.place.rpartition(":")[2]
            if others := [each for each in _KNOWN.values() if each.place.endswith(f":{name}")]:
                raise UsageProblem(
                    f"it was judged by another text of {wanted.place} than {others[0].file} has "
                    f"now; the text of then is {copy}"
                )
            raise UsageProblem(
                f"it was judged by the model {wanted.place}; name the file with --model, such as "
                f"{copy}"
            )


def copy_name(place: str, sha256: str) -> str:
    """Return the name of the copy of a model's file that a run keeps."""
    stem = Path(place.rpartition(":")[0]).stem
    return f"{stem}-{sha256[:12]}.py"


def contract_of(design: Manifest, program: Program | None = None) -> Contract | None:
    """Return the contract by which an application is judged.

    It is None if that is the contract of a shipped program. A design with an adapter that is
    compared with itself has the topics of the program.
    """
    subject = design.application
    if subject is None:
        if not design.compared_with or program is None:
            return None
        return Contract(
            name=program.name,
            reads=program.reads,
            writes=program.writes,
            format=WRITTEN[program.name],
            increasing=INCREASING.get(program.name),
            compared_with=design.compared_with,
        )
    asked = {name: query.fields for name, query in subject.query.items()}
    (role, output), *others = subject.output.items()
    further = (
        FurtherOutput(
            writes=name,
            format=each.format,
            ignore=each.ignore,
            identity=each.identity,
            increasing=each.increasing,
            asked=asked.get(name),
        )
        for name, each in others
    )
    return Contract(
        name=design.name,
        reads=subject.role_in,
        writes=role,
        format=output.format,
        ignore=output.ignore,
        shape=subject.shape,
        model=_file_of(design),
        compared_with=design.compared_with or "itself",
        identity=output.identity,
        increasing=output.increasing,
        also_reads=tuple(subject.input)[1:],
        unique=_unique_of(subject),
        asked=asked.get(role),
        further=tuple(further),
    )


def _unique_of(subject: Subject) -> dict[str, str]:
    """Return the paths by which records of inputs are told apart, if outputs have identities."""
    if not any(each.identity for each in subject.output.values()):
        return {}
    return {role: each.unique.text for role, each in subject.input.items() if each.unique}


def _file_of(design: Manifest) -> ModelFile | None:
    """Return what a history says of a design's model, and know the model from here on.

    Raises:
        UsageProblem: It cannot be loaded, or is of another shape than the application.
    """
    found = design.model
    subject = design.application
    if found is None or subject is None:
        return None
    if found.shape != subject.shape:
        raise UsageProblem(
            f"{design.file}: `shape` is {subject.shape}, and {found.place} is a "
            f"{type(found.model).__name__}."
        )
    for role, described in subject.input.items():
        if described.format not in READS:
            raise UsageProblem(
                f"{design.file}: a model reads inputs of the formats {', '.join(READS)}, and "
                f"[input.{role}] has {described.format}."
            )
    _demand_names(design, found, "input", found.model.inputs, tuple(subject.input))
    _demand_names(design, found, "output", found.model.outputs, tuple(subject.output))
    offer(found)
    first, *others = ((role, each.format) for role, each in subject.input.items())
    return ModelFile(
        place=found.place, sha256=found.sha256, reads=first[1], also_reads=dict(others)
    )


def _demand_names(
    design: Manifest, found: Loaded, table: str, named: tuple[str, ...], there: tuple[str, ...]
) -> None:
    """Demand that a model names just the inputs or outputs of its design.

    It may leave the names out if there is one.

    Raises:
        UsageProblem: It names another one, or not all of several.
    """
    if not named and len(there) == 1:
        return
    for name in named:
        if name not in there:
            raise UsageProblem(
                f"{design.file}: the model {found.place} names the {table} {name:.100}, and there "
                f"is no [{table}.{name:.100}]; there is {', '.join(there)}."
                f"{did_you_mean(name, there)}"
            )
    for name in there:
        if name not in named:
            raise UsageProblem(
                f"{design.file}: there are {len(there)} {table}s, and the model {found.place} does "
                f"not name [{table}.{name}]; say {table}s={there!r} where it is made."
            )


def keep_copy(design: Manifest, folder: Path) -> None:
    """Keep the text of a design's model, so that its run can be judged again."""
    if found := design.model:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / copy_name(found.place, found.sha256)).write_text(found.source, encoding="utf-8")


def model_of(contract: Contract) -> "Modelled":
    """Return the model of a contract that has one.

    Raises:
        UsageProblem: It is not known in this process.
    """
    return Modelled(contract, _known(contract))


@dataclass(frozen=True)
class Modelled:
    """A model, and the contract of the application that it is of."""

    contract: Contract
    loaded: Loaded
    roles: Mapping[str, str] = field(default_factory=dict)  # topic -> role, if they differ

    def states(self, inputs: Iterable[Record]) -> States:
        """Return the states of each key: the outputs for these inputs.

        Nothing comes of aborted records.

        Raises:
            Unreadable: A record is none of the declared format.
            UsageProblem: The model fails, or cannot be judged by.
        """
        records = list(inputs)
        return self.folded(records) if any(record.visible for record in records) else {}

    def folded(self, records: Iterable[Record]) -> States:
        """Return the states of each key as if every one of the records counted.

        Of several inputs, those of a map are kept apart by the partition that they come of. Those
        of a fold are the ones in the order of timestamps.
        """
        steps = Steps(self)
        states = defaultdict[bytes, list[State]](list)
        is_map = isinstance(self.loaded.model, models.Map)
        for record in in_order_of_time(records) if self.contract.also_reads else records:
            for key, value in steps.after(record):
                own = key
                if is_map and self.contract.also_reads:
                    own = lane_of(key, f"{self.role_of(record)}-{record.partition}")
                states[own].append(State(own, value, record, (), ""))
        return dict(states)

    def interleavings(self, inputs: Iterable[Record], states: States) -> Interleavings:
        """Return what a fold of several inputs may show.

        Args:
            inputs: Visible and aborted records.
            states: Its states in the order of timestamps.
        """
        model = self.loaded.model
        assert isinstance(model, models.Fold)
        steps = Steps(self)
        partitions = defaultdict[str | None, dict[tuple[str, int], list[Record]]](dict)
        aborted = defaultdict[str | None, list[Record]](list)
        of = dict[int, str | None]()  # a record -> the key of its state
        for record in in_order_of_time(inputs):
            if record.visible:
                state_key = of[id(record)] = steps.state_key(record)
                place = record.topic, record.partition
                partitions[state_key].setdefault(place, []).append(record)
                continue
            with suppress(Unreadable, UsageProblem):  # a model need not know what to do with it
                aborted[steps.state_key(record)].append(record)
        owners = {key: of[id(each[0].source)] for key, each in states.items()}
        own = {(state_key or "").encode(): state_key for state_key in partitions}
        has_other_keys = any(own.get(key, "") != owner for key, owner in owners.items())
        owners = own | owners  # another order may give a key what this one does not

        def stepped(before: Stepped, record: Record) -> Stepped:
            return steps.stepped(before, record, owners)

        return Interleavings(
            stepped,
            steps.begun(model.initial),
            {key: [*each.values()] for key, each in partitions.items()},
            aborted,
            owners,
            states,
            has_other_keys=has_other_keys,
            may_skip=model.may_skip,
        )

    def role_of(self, record: Record) -> str:
        """Return the role of the input that a record lies in."""
        if not self.contract.also_reads:
            return self.contract.reads
        return self.roles.get(record.topic, record.topic)

    def diagnosis(self, inputs: list[Record]) -> Diagnose:
        """Return a function that names the anomaly of an output that is no state."""
        return _Diagnostician(self, inputs)

    def problem(self, record: Record, said: str) -> UsageProblem:
        """Return the refusal of the model for what it does with a record."""
        key = "no key" if record.key is None else f"the key {_text(record.key)}"
        return UsageProblem(
            f"The model {self.loaded.place} {said}, at the record {record.at} with "
            f"{visible(key, SAID_CHARS)}."
        )


class Answer(NamedTuple):
    """An output that a model gives, as it is compared."""

    role: str  # of the output
    key: bytes
    value: Value


class Steps:
    """A model on its way through the input, with the states of a fold."""

    def __init__(self, modelled: Modelled) -> None:
        self._modelled = modelled
        self._model = modelled.loaded.model
        contract = modelled.contract
        self._contracts = {each.writes: each for each in contract.outputs}
        self._states: dict[str | None, Any] = {}
        self._hangs_on: dict[tuple[str, str | None], Record] = {}
        self._owners: dict[tuple[str, str | None], str | None] = {}

    def after(self, record: Record) -> Iterator[tuple[bytes, Value]]:
        """Go through those outputs of the next record that go to the first output."""
        writes = self._modelled.contract.writes
        return ((each.key, each.value) for each in self.answers(record) if each.role == writes)

    def answers(self, record: Record) -> Iterator[Answer]:
        """Go through the outputs of the next record, as they are compared."""
        given = self._given(record)
        key: str | None = None
        if isinstance(self._model, models.Map):
            outputs = self._asked(record, given)
        else:
            key = self._key(record, given)
            self._demand_one_partition(record, "a state", key)
            state = self._states.get(key, self._model.initial)
            self._states[key], outputs = self._asked(record, given, state)
        for output in outputs:
            what = f"an output{self._named(output)}"
            self._demand_one_partition(record, what, output.key)
            self._demand_one_state(record, what, output.key, key)
            if own := self._contracts.get(self._role(output)):
                value = value_of(own, record._replace(value=self._written(record, output)))
                yield Answer(own.writes, (output.key or "").encode(), value)

    def begun(self, initial: Any) -> Stepped:
        """Return the state of a fold before its first record, as an answer."""
        try:
            text = json.dumps(initial, sort_keys=True, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            text = ""  # the first step says what is wrong with it
        return Stepped(initial, text.encode(errors="replace"), {})

    def stepped(
        self, before: Stepped, record: Record, owners: Mapping[bytes, str | None]
    ) -> Stepped:
        """Return the answer of a fold to a record in some order of its inputs.

        Args:
            before: Its answer to the record before.
            record: The record.
            owners: Key of an output -> the key of the state that gives it in order of timestamps.

        Raises:
            UsageProblem: It gives a key that it does not give in that order, or cannot be judged.
        """
        given = self._given(record)
        state, outputs = self._asked(record, given, before.state)
        found = defaultdict[bytes, list[Value]](list)
        for output in outputs:
            own = self._contracts.get(self._role(output))
            if own is None or own.writes != self._modelled.contract.writes:
                continue
            key = (output.key or "").encode()
            if key not in owners:
                self._fail(
                    record,
                    f"has an output of the key {_short(output.key)} only if its inputs are read in "
                    "another order than that of their timestamps",
                )
            found[key].append(value_of(own, record._replace(value=self._written(record, output))))
        text = self._encoded(record, "gives the state", state)
        return Stepped(state, text, {key: tuple(values) for key, values in found.items()})

    def state_key(self, record: Record) -> str | None:
        """Return the key of the state that a record belongs to, in a fold."""
        return self._key(record, self._given(record))

    def _given(self, record: Record) -> models.Record:
        """Return a record as a model is given it.

        Raises:
            Unreadable: It is none of the declared format.
        """
        contract = self._modelled.contract
        assert contract.model
        role = self._modelled.role_of(record)
        reads = contract.model.also_reads.get(role, contract.model.reads)
        try:
            key = None if record.key is None else record.key.decode()
            value: Any = record.value
            if value is not None and reads == "json":
                value = loaded(value)
        except ValueError:
            raise Unreadable(f"{record.at} is no JSON with a key of text") from None
        return models.Record(
            key, value, record.timestamp_ms, record.headers, record.partition, record.offset, role
        )

    def _key(self, record: Record, given: models.Record) -> str | None:
        assert isinstance(self._model, models.Fold)
        key = self._called(record, self._model.key, given)
        if not (key is None or isinstance(key, str)):
            self._fail(record, f"gives {_short(key)} as the key of a state, which is no text")
        return key

    def _asked(self, record: Record, given: models.Record, *state: Any) -> Any:
        """Return the answer of a step: outputs, with the next state before them in a fold.

        It is asked twice, and given each time what it was given before.
        """
        before = self._encoded(record, "is given", [*state, _comparable(given.value)])
        first = self._answer(record, given, *state)
        if before != self._encoded(record, "is left with", [*state, _comparable(given.value)]):
            self._fail(record, "changes in place what it is given, and has to make it anew")
        second = self._answer(record, given, *state)
        if self._all(record, first) != self._all(record, second):
            self._fail(record, "gives two answers when it is asked twice")
        return first

    def _answer(self, record: Record, given: models.Record, *state: Any) -> Any:
        answer = self._called(record, self._model.step, *state, given)
        if not state:
            return self._outputs(record, answer)
        if not isinstance(answer, tuple) or len(answer) != 2:
            self._fail(
                record, f"gives {_short(answer)}, and a fold gives its next state and its outputs"
            )
        return answer[0], self._outputs(record, answer[1])

    def _called(self, record: Record, function: Any, *arguments: Any) -> Any:
        """Call a function of a model, and go to the end of what it yields."""
        try:
            answer = function(*arguments)
            return list(answer) if isinstance(answer, Iterator) else answer
        except (Exception, SystemExit) as error:
            said = visible(" ".join(f"{type(error).__name__}: {error}".split()), SAID_CHARS)
            raise self._modelled.problem(record, f"raises {said}") from error

    def _outputs(self, record: Record, answer: Any) -> list[models.Output]:
        """Return outputs as a list; what an output holds is looked at when it is written."""
        is_list = isinstance(answer, list | tuple | Iterator)
        outputs = list(answer) if is_list else [answer]
        for output in outputs:
            if not is_list or not isinstance(output, models.Output):
                self._fail(record, f"gives {_short(output)}, and outputs are a list of Output")
            if not (output.key is None or isinstance(output.key, str)):
                self._fail(record, f"gives {_short(output.key)} as a key, which is no text")
            self._demand_role(record, output)
        return outputs

    def _demand_role(self, record: Record, output: models.Output) -> None:
        """Refuse an output that goes to none of those that the model names."""
        there = self._model.outputs or (self._modelled.contract.writes,)
        names = ", ".join(there)
        if output.to is None and len(there) > 1:
            self._fail(record, f"gives an output that does not say `to` which of {names} it goes")
        if output.to is not None and output.to not in there:
            self._fail(
                record, f"gives an output to {_short(output.to)}, and its outputs are {names}"
            )

    def _role(self, output: models.Output) -> str:
        """Return the role of the output that an answer goes to."""
        if output.to is not None:
            return output.to
        return self._modelled.contract.writes

    def _named(self, output: models.Output) -> str:
        return f" to {output.to}" if len(self._model.outputs) > 1 else ""

    def _all(self, record: Record, answer: Any) -> tuple[object, ...]:
        """Return an answer in a form that compares."""
        state: tuple[bytes, ...] = ()
        outputs = answer
        if isinstance(self._model, models.Fold):
            state = (self._encoded(record, "gives the state", answer[0]),)
            outputs = answer[1]
        written = ((each.to, each.key, self._written(record, each)) for each in outputs)
        return (*state, *written)

    def _written(self, record: Record, output: models.Output) -> bytes | None:
        """Return the bytes of an output."""
        if output.value is None:
            return None
        own = self._contracts.get(self._role(output))
        if own is None:  # another output of the application: its own history is judged for it
            is_bytes = isinstance(output.value, bytes)
            return output.value if is_bytes else self._encoded(record, "gives", output.value)
        if own.format != "bytes":
            return self._encoded(record, "gives", output.value)
        if not isinstance(output.value, bytes):
            self._fail(record, f"gives {_short(output.value)}, and the output is declared as bytes")
        return output.value

    def _encoded(self, record: Record, how: str, value: object) -> bytes:
        try:
            text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)
            return text.encode()
        except (TypeError, ValueError, RecursionError) as error:
            why = visible(str(error), SAID_CHARS)
            self._fail(record, f"{how} {_short(value)}, which JSON cannot say ({why})")

    def _demand_one_partition(self, record: Record, what: str, key: str | None) -> None:
        """Refuse a key that hangs on two partitions of a single input."""
        if self._modelled.contract.also_reads:
            return
        before = self._hangs_on.setdefault((what, key), record)
        if before.partition != record.partition:
            self._fail(
                record,
                f"has {what} of the key {_short(key)} that hangs on two partitions, on "
                f"{before.at} before, and nothing orders records of two partitions",
            )

    def _demand_one_state(
        self, record: Record, what: str, key: str | None, state_key: str | None
    ) -> None:
        """Refuse an output key of two states, if a fold has several inputs."""
        known = self._owners.setdefault((what, key), state_key)
        if self._modelled.contract.also_reads and known != state_key:
            self._fail(
                record,
                f"has {what} of the key {_short(key)} that hangs on two states, of "
                f"{_short(known)} and of {_short(state_key)}, and nothing orders records of "
                "several inputs",
            )

    def _fail(self, record: Record, said: str) -> NoReturn:
        raise self._modelled.problem(record, said)


def lane_of(key: bytes, partition: str) -> bytes:
    """Return the key of those outputs that come of one partition of the inputs."""
    return itself.BETWEEN.join((key, partition.encode()))


def lanes_of(states: States) -> "dict[bytes, Lanes]":
    """Return the lanes of each output key of a map of several inputs."""
    keys = defaultdict[bytes, list[bytes]](list)
    for lane in states:
        keys[lane.rpartition(itself.BETWEEN)[0]].append(lane)
    return {
        key: Lanes(tuple(own), tuple([state.value for state in states[lane]] for lane in own))
        for key, own in keys.items()
    }


@dataclass(frozen=True)
class Lanes:
    """The states of one output key of a map, by the input partition that they come of.

    Attributes:
        keys: The keys of the states.
        states: The values of each.
    """

    keys: tuple[bytes, ...] = ()
    states: tuple[list[Value], ...] = ()

    @cached_property
    def _values(self) -> tuple[frozenset[Value], ...]:
        return tuple(map(frozenset, self.states))

    def is_ambiguous(self, values: Iterable[Value]) -> bool:
        """Return whether a value may come of several lanes."""
        return any(sum(value in known for known in self._values) > 1 for value in values)

    def may_end(
        self,
        outputs: Sequence[tuple[Value, int]],
        counts: Sequence[int],
        *,
        exactly_once: bool,
        or_more: bool,
    ) -> bool:
        """Return whether outputs can show just the first states of each lane.

        Args:
            outputs: The values in order, each with the number of interruptions before it.
            counts: How many states each lane has to show.
            exactly_once: Whether no output may come again.
            or_more: Whether it may show more of them.

        Raises:
            TooMany: There are too many ways.
        """

        def is_end(positions: Sequence[int]) -> bool:
            pairs = zip(positions, counts, strict=True)
            return all(at + 1 >= count if or_more else at + 1 == count for at, count in pairs)

        known = [each for each in outputs if any(each[0] in values for values in self._values)]
        found = shared_out(self.states, known, exactly_once=exactly_once, is_end=is_end)
        return found is not None

    def owners(
        self, outputs: Sequence[tuple[Value, int]], *, exactly_once: bool
    ) -> list[bytes | None]:
        """Return the lane that each visible output belongs to; None if it is of none.

        Outputs that two lanes may give are shared out so that all are right, if there is a way.

        Args:
            outputs: The values in order, each with the number of interruptions before it.
            exactly_once: Whether no output may come again.

        Raises:
            TooMany: There are too many ways.
        """
        may_be = [
            [number for number, values in enumerate(self._values) if value in values]
            for value, _ in outputs
        ]
        known = [each for each, lanes in zip(outputs, may_be, strict=True) if lanes]
        found: list[int] | None = [lanes[0] for lanes in may_be if lanes]
        if any(len(lanes) > 1 for lanes in may_be):
            found = shared_out(self.states, known, exactly_once=exactly_once)
        if found is None:
            found = self._likely(known)
        numbers = iter(found)
        return [self.keys[next(numbers)] if lanes else None for lanes in may_be]

    def _likely(self, outputs: Sequence[tuple[Value, int]]) -> list[int]:
        """Share outputs out where no way is right: to a lane in which the value is due next."""
        positions = [0] * len(self.keys)
        found = list[int]()
        for value, _ in outputs:
            lanes = [number for number, states in enumerate(self.states) if value in states]
            due = (n for n in lanes if self.states[n][positions[n] : positions[n] + 1] == [value])
            later = (n for n in lanes if value in self.states[n][positions[n] :])
            lane = next(due, None)
            lane = next(later, lanes[0]) if lane is None else lane
            if value in self.states[lane][positions[lane] :]:
                positions[lane] = self.states[lane].index(value, positions[lane]) + 1
            found.append(lane)
        return found


def _comparable(value: object) -> object:
    """Return a value that JSON can say; bytes cannot be changed in place."""
    return None if isinstance(value, bytes) else value


def _text(key: bytes) -> str:
    return key.decode(errors="backslashreplace")


def _short(value: object) -> str:
    """Return a value as it may stand in a sentence."""
    return visible(_REPR.repr(value), SAID_CHARS)  # also of a class whose `repr` fails


@dataclass
class _Diagnostician:
    """Names the anomaly of an output that no right run gives.

    It is the mistake that would give just this output: an aborted record that counts, one that
    counts twice, or not at all, or all that came before it.
    """

    modelled: Modelled
    inputs: list[Record]
    tried: int = 0
    _found: dict[bytes, dict[Value, Diagnosis]] = field(default_factory=dict)

    def __call__(self, key: bytes, value: Value, states: list[State]) -> Diagnosis:
        """Compare with the outputs of each mistake, the likely ones first."""
        blamed = self._of_aborted.get((key, value))
        if blamed:
            why = f"it is right only if what was aborted counts, as {blamed.at}"
            return Diagnosis("uncommitted-visible", why, blamed)
        if key not in self._found:
            self._found[key] = self._mistakes(key, states)
        if known := self._found[key].get(value):
            return known
        if not states:
            return Diagnosis("phantom", "the model gives nothing for this key")
        due = self._nearest(value, states)
        return Diagnosis("phantom", "the model never gives it for this key", due.source, due)

    def _nearest(self, value: Value, states: list[State]) -> State:
        """Return the state that has the most fields in common with a value; else the last one."""
        fields = fields_of(value)
        return max(reversed(states), key=lambda state: len(fields & fields_of(state.value)))

    @cached_property
    def _of_aborted(self) -> dict[tuple[bytes, Value], Record]:
        """The outputs that come only if aborted records count, with an aborted record of each."""
        found: dict[tuple[bytes, Value], Record] = {}
        last: dict[tuple[str, int, bytes | None], Record] = {}
        steps = Steps(self.modelled)
        for record in self.inputs:
            if not record.visible:
                last[record.topic, record.partition, record.key] = record
            with suppress(Unreadable, UsageProblem):  # a model need not know what to do with it
                for key, value in steps.after(record):
                    if blamed := last.get((record.topic, record.partition, record.key)):
                        found.setdefault((key, value), blamed)
        return found

    def _mistakes(self, key: bytes, states: list[State]) -> dict[Value, Diagnosis]:
        """Return what the key would show if one of its records was taken wrongly."""
        found: dict[Value, Diagnosis] = {}
        if not states or isinstance(self.modelled.loaded.model, models.Map):
            return found
        steps = Steps(self.modelled)
        state_keys = {steps.state_key(state.source) for state in states}
        sources = [r for r in self.inputs if r.visible and steps.state_key(r) in state_keys]
        for number, source in enumerate(sources):
            rest = sources[number + 1 :]
            before = sources[:number]
            for name, why, records in (
                ("duplicated", f"{source.at} counts twice", [*before, source, source, *rest]),
                ("lost", f"{source.at} does not count", [*before, *rest]),
                ("lost", f"nothing before {source.at} counts", [source, *rest]),
            ):
                diagnosis = Diagnosis(name, f"it is right only if {why}", source)
                for value in self._shown(key, records):
                    found.setdefault(value, diagnosis)
        return found

    def _shown(self, key: bytes, records: Sequence[Record]) -> list[Value]:
        """Return what a key shows of records, until too many steps were tried."""
        steps = Steps(self.modelled)
        shown = list[Value]()
        with suppress(Unreadable, UsageProblem):
            for record in records:
                self.tried += 1
                if self.tried > MOST_TRIED:
                    break
                shown += [value for each, value in steps.after(record) if each == key]
        return shown


class Disagreement(NamedTuple):
    """The first output in which an application and its model differ.

    Attributes:
        source: The input record; None if no input gives the output.
        key: The key of the output, for a person.
        expected: What the model gives; None if it gives nothing there.
        got: What the application gave; None if it gave nothing there.
    """

    source: Record | None
    key: str
    expected: Value | None
    got: Value | None

    def __str__(self) -> str:
        """Say it in a sentence."""
        where = f"for {self.source.at} " if self.source else ""
        return (
            f"{where}the model gives {_shown(self.expected)} of the key {self.key}, and the "
            f"application gave {_shown(self.got)}"
        )


def _shown(value: Value | None) -> str:
    return "nothing" if value is None else _short(", ".join(map(str, value)))


def first_difference(
    contract: Contract,
    model: Loaded,
    inputs: Sequence[Record],
    outputs: Iterable[Record],
    topics: Mapping[str, str] | None = None,
) -> Disagreement | None:
    """Return where a model and the outputs of a run without a fault differ first.

    Args:
        contract: What is compared, and how.
        model: The model.
        inputs: The visible records of the inputs, in the order of the log.
        outputs: The visible records of the outputs, in the order of the log.
        topics: Role -> topic; None if there is one output, and topics are called as their roles.

    Raises:
        UsageProblem: The model fails, or an output is none of the declared format.
        Inconclusive: The model may give too many things to be searched for what was given.
    """
    roles = {topic: role for role, topic in (topics or {}).items()}
    found = list[Disagreement]()
    for own in contract.outputs:
        modelled = Modelled(own, model, roles)
        records = [r for r in outputs if not topics or r.topic == topics[own.writes]]
        found += _differences(modelled, inputs, _values(own, records))
    return min(found, key=_place_of, default=None)


def _values(contract: Contract, outputs: Iterable[Record]) -> dict[bytes, list[Value]]:
    """Return the values of each key."""
    given: dict[bytes, list[Value]] = defaultdict(list)
    for record in outputs:
        try:
            given[record.key or b""].append(value_of(contract, record))
        except Unreadable as error:
            raise UsageProblem(error.why) from None
    return given


def _differences(
    modelled: Modelled, inputs: Sequence[Record], given: dict[bytes, list[Value]]
) -> Iterator[Disagreement]:
    """Go through the keys of one output in which a model and an application differ."""
    is_fold = isinstance(modelled.loaded.model, models.Fold)
    if modelled.contract.also_reads and is_fold:
        of = modelled.interleavings(inputs, modelled.states(inputs))
        yield from _of_interleavings(of, given)
        return
    states = modelled.states(inputs)
    if modelled.contract.also_reads:
        given = shared(states, given)
    may_skip = getattr(modelled.loaded.model, "may_skip", False)
    for key in [*states, *(key for key in given if key not in states)]:
        if found := _differing(key, states.get(key, []), given.get(key, []), may_skip):
            yield found


def shared(states: States, given: Mapping[bytes, list[Value]]) -> dict[bytes, list[Value]]:
    """Share the outputs of each key out among the input partitions that give it."""
    found: dict[bytes, list[Value]] = defaultdict(list)
    known = lanes_of(states)
    for key, values in given.items():
        lanes = known.get(key, Lanes())
        owners = lanes.owners([(value, 0) for value in values], exactly_once=True)
        for value, owner in zip(values, owners, strict=True):
            found[key if owner is None else owner].append(value)
    return found


def _of_interleavings(
    of: Interleavings, given: Mapping[bytes, list[Value]]
) -> Iterator[Disagreement]:
    for key in [*of.owners, *(key for key in given if key not in of.owners)]:
        values = given.get(key, [])
        walk = of.walk(key, exactly_once=True)
        shown = walk.show([(value, 0) for value in values])
        if walk.undecided:
            raise TooMany(walk.undecided)
        wrong = {each.number: each.due for each in walk.wrong}
        for number, each in enumerate(shown):
            if each.foreign or number in wrong:
                due = each.foreign.due if each.foreign else wrong[number]
                source = due.source if due else None
                yield Disagreement(source, _text(key), due.value if due else None, values[number])
                break
        else:
            for state in walk.missing()[:1]:
                yield Disagreement(state.source, _text(key), state.value, None)


def _place_of(found: Disagreement) -> tuple[int, int, int]:
    """Return what sorts disagreements: the place of the input, and those without one last."""
    source = found.source
    return (0, source.offset, source.partition) if source else (1, 0, 0)


def _differing(
    key: bytes, states: list[State], given: list[Value], may_skip: bool
) -> Disagreement | None:
    due = iter(states)
    state: State | None = None
    for value in given:
        state = next(due, None)
        first = state
        while may_skip and state and state.value != value:
            state = next(due, None)
        if state is None or state.value != value:
            at = state or first
            source = at.source if at else None
            return Disagreement(source, _text(key), at.value if at else None, value)
    left = list(due)
    if not left or (may_skip and given and state is states[-1]):
        return None
    missing = left[-1] if may_skip else left[0]
    return Disagreement(missing.source, _text(key), missing.value, None)
