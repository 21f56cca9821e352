"""What the checks look at: one application's input, model and visible outputs, drawn from a history."""

from dataclasses import dataclass
from functools import cached_property

from streamgate.history import History
from streamgate.history.events import Application, Instance, Record
from streamgate.programs import PROGRAMS, Program, State, States, Unreadable
from streamgate.verdicts import Anomaly


@dataclass
class Output:
    """A visible output, and where it stands among its key's states: an index, or the anomaly that it is."""

    record: Record
    index: int
    anomaly: Anomaly | None = None


class View:
    """One application of a history, with everything derived once."""

    def __init__(self, history: History, application: str) -> None:
        self.history = history
        self.application: Application = history.application(application)
        self.program: Program = PROGRAMS[self.application.program]

    @property
    def exactly_once(self) -> bool:
        """Whether the stricter face of the promise is judged."""
        return self.application.mode == "exactly_once"

    @cached_property
    def inputs(self) -> list[Record]:
        """Every input record of the log, aborted ones too, per partition in order."""
        topic = self.application.topics[self.program.reads]
        return [r for r in self.history.of(Record) if r.topic == topic]

    @cached_property
    def states(self) -> States:
        """The model's states: the fold of what a read_committed reader of the input sees."""
        return self.program.model(r for r in self.inputs if r.visible)

    @cached_property
    def outputs(self) -> dict[bytes, list[Output]]:
        """Visible outputs by key, in the order of the log, each placed among the model's states."""
        topic = self.application.topics[self.program.writes]
        places = {key: {state.value: i for i, state in enumerate(states)} for key, states in self.states.items()}
        outputs: dict[bytes, list[Output]] = {}
        for record in self.history.of(Record):
            if record.topic == topic and record.visible:
                outputs.setdefault(record.key or b"", []).append(self._place(record, places))
        return outputs

    def _place(self, record: Record, places: dict[bytes, dict[tuple[object, ...], int]]) -> Output:
        key = record.key or b""
        try:
            value = self.program.value_of(record)
        except Unreadable as error:
            return Output(record, -1, Anomaly(name="phantom", text=error.why, key=text(key)))
        index = places.get(key, {}).get(value)
        if index is not None:
            return Output(record, index)
        states = self.states.get(key, [])
        name, why = self.program.explain(self.inputs, key, value, states)
        expected = next((s for s in states if s.chain[0][:3] == value[-1]), None)
        said = f"{record.at} says {show(value)} for {text(key)}, a state that no fold of the input gives: {why}"
        return Output(
            record,
            -1,
            Anomaly(name=name, text=said, key=text(key), source=expected and expected.source.at, got=show(value))
            if expected is None
            else Anomaly(
                name=name, text=said, key=text(key), source=expected.source.at, expected=show(expected.value), got=show(value)
            ),
        )

    @cached_property
    def foreign(self) -> list[Anomaly]:
        """Every output that is no state at all."""
        return [o.anomaly for outputs in self.outputs.values() for o in outputs if o.anomaly]

    @cached_property
    def interruptions(self) -> int:
        """How often an instance began again after another: each may make an at_least_once design step back once."""
        starts = [e for e in self.history.of(Instance) if e.application == self.application.name and e.event == "ready"]
        return max(0, len(starts) - 1)

    def anomaly(self, name: str, said: str, key: bytes, state: State | None = None, got: Record | None = None) -> Anomaly:
        """An anomaly about one key, with the input concerned and both values, ready to print."""
        return Anomaly(
            name=name,
            text=said,
            key=text(key),
            source=state.source.at if state else None,
            expected=show(state.value) if state else None,
            got=show(self.program.value_of(got)) + f" at {got.at}" if got else None,
        )


def text(key: bytes) -> str:
    """A key for a person."""
    return key.decode(errors="backslashreplace")


def show(value: tuple[object, ...]) -> str:
    """A canonical value for a person, short."""
    shown = ", ".join(str(part) for part in value)
    return shown if len(shown) <= 160 else shown[:157] + "…"
