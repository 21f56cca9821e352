"""What the checks look at: one application's input, model and visible outputs, drawn from a history."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from streamgate.history import History
from streamgate.history.events import Application, Instance, Record
from streamgate.programs import PROGRAMS, Diagnose, Program, State, States, Unreadable
from streamgate.verdicts import Anomaly


@dataclass
class Output:
    """A state that a visible output shows, and where it stands among its key's: an index, or the anomaly that it is.

    ``interruptions``: how often an instance had begun or gone on again when it was seen, each of which may have made
    an at_least_once design step back once.
    """

    record: Record
    index: int
    interruptions: int
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
        """Every input record of the log, aborted ones too, in its order (an upstream's outputs are recorded twice)."""
        topic = self.application.topics[self.program.reads]
        log = {(r.partition, r.offset): r for r in self.history.of(Record) if r.topic == topic}
        return [log[place] for place in sorted(log)]

    @cached_property
    def states(self) -> States:
        """The model's states: the fold of what a read_committed reader of the input sees."""
        visible = [r for r in self.inputs if r.visible]
        log = self.application.name, len(self.inputs), len(visible)  # a log only grows, so its length says which it is
        if log not in self.history.derived:
            self.history.derived[log] = self.program.model(visible)
        states: States = self.history.derived[log]
        return states

    @cached_property
    def outputs(self) -> dict[bytes, list[Output]]:
        """Visible outputs by key, in the order of the log, each placed among the model's states."""
        topic = self.application.topics[self.program.writes]
        places = {key: {state.value: i for i, state in enumerate(states)} for key, states in self.states.items()}
        outputs: dict[bytes, list[Output]] = {}
        known: set[tuple[int, int]] = set()
        interruptions = -1  # the first start interrupts nothing
        for event in self.history.events:
            if isinstance(event, Instance):
                if event.application == self.application.name and event.event in {"started", "resumed"}:
                    interruptions += 1
            elif isinstance(event, Record) and event.topic == topic and event.visible:
                if (event.partition, event.offset) in known:
                    continue
                known.add((event.partition, event.offset))
                outputs.setdefault(event.key or b"", []).extend(self._place(event, places, max(0, interruptions)))
        return outputs

    def _place(
        self, record: Record, places: dict[bytes, dict[tuple[object, ...], int]], interruptions: int
    ) -> Iterator[Output]:
        key = record.key or b""
        try:
            items = self.program.items(self.program.value_of(record))
        except Unreadable as error:
            yield Output(record, -1, interruptions, Anomaly(name="phantom", text=error.why, key=text(key)))
            return
        for value in items:
            index = places.get(key, {}).get(value)
            if index is None:
                yield Output(record, -1, interruptions, self._misfit(record, key, value))
            else:
                yield Output(record, index, interruptions)

    def _misfit(self, record: Record, key: bytes, value: tuple[object, ...]) -> Anomaly:
        diagnosis = self._diagnose(key, value, self.states.get(key, []))
        return Anomaly(
            name=diagnosis.name,
            text=f"{record.at} says {show(value)} for {text(key)}, which no fold of the input gives: {diagnosis.why}",
            key=text(key),
            source=diagnosis.blame.at if diagnosis.blame else None,
            expected=show(diagnosis.due.value) if diagnosis.due else None,
            got=f"{show(value)} at {record.at}",
        )

    @cached_property
    def _diagnose(self) -> Diagnose:
        return self.program.diagnosis(self.inputs)

    @cached_property
    def foreign(self) -> list[Anomaly]:
        """Every output that is no state at all."""
        return [o.anomaly for outputs in self.outputs.values() for o in outputs if o.anomaly]

    def anomaly(
        self, name: str, said: str, key: bytes, state: State | None = None, got: Record | None = None
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
    """The application's view as the history stands, the same one until more is known."""
    known, view = history.derived.get(application, (None, None))
    if known != history.facts:
        view = View(history, application)
        history.derived[application] = history.facts, view
    assert isinstance(view, View)
    return view


def text(key: bytes) -> str:
    """A key for a person."""
    return key.decode(errors="backslashreplace")


def show(value: tuple[object, ...]) -> str:
    """A canonical value for a person, short."""
    shown = ", ".join(str(part) for part in value)
    return shown if len(shown) <= 160 else shown[:157] + "…"
