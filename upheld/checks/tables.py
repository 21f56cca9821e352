"""The tables that answers are compared with: rows of keys, and their order.

A program whose rows several topics make together has a model of them. The table of an application
without an adapter is one of its outputs. No model is needed: the rows of a key are its visible
outputs, in the order of the log.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Set
from typing import Final

from upheld.checks.view import Output, View, text
from upheld.history.events import Answer, Contract, Record
from upheld.programs import Diagnosis, Progress, Unreadable, Value
from upheld.programs.asked import Compared
from upheld.programs.itself import Itself
from upheld.verdicts import Anomaly, NotOffered

SHOWN: Final = 200  # characters of an answer


def table_of(view: View) -> "Table":
    """Return the table of an application.

    Raises:
        NotOffered: It is not asked for keys of this output.
    """
    if view.merged:
        return MergedTable(view)
    contract = view.application.contract
    if contract is None or contract.asked is None:
        raise NotOffered("it is not asked for keys of this output ([query.X])")
    return OutputTable(view, contract)


class Table(ABC):
    """The rows that an answer for a key may hold.

    Attributes:
        view: The application whose table it is.
    """

    def __init__(self, view: View) -> None:
        self.view = view

    @abstractmethod
    def row(self, record: Record) -> Value | None:
        """Return the content of a visible row; None if it says that there is none."""

    @abstractmethod
    def value(self, answer: Answer) -> Value | None:
        """Return the content of an answer; None if the answer is that there is none.

        An answer that breaks the contract says so in its place.
        """

    @abstractmethod
    def progressed(self) -> Iterator[tuple[Output, Progress]]:
        """Go through the visible rows, each with how far it is."""

    @abstractmethod
    def progress(self, answer: Answer) -> Progress | Anomaly:
        """Return how far an answer is.

        An answer that is no row, or was not visible yet, is an anomaly.
        """

    @abstractmethod
    def least(self, key: bytes, before: Progress, /) -> Progress:
        """Return how far the next answer for a key has to be at least."""

    @abstractmethod
    def keys(self) -> Set[bytes]:
        """Return the keys for which there has to be an answer."""

    def said(self, answer: Answer) -> str:
        """Return who answered what, and when."""
        said = shown(answer)
        return f"{answer.name} answered {text(answer.key)} with {said} at {answer.at_ms} ms"

    @abstractmethod
    def name(self, progress: Progress) -> str:
        """Return what a row is called that is so far."""

    @abstractmethod
    def holds(self, progress: Progress) -> str:
        """Return how far an answer is, after “which”."""

    @abstractmethod
    def were_visible(self, progress: Progress) -> str:
        """Return that a row which is so far was visible."""


class MergedTable(Table):
    """The rows that several topics make together."""

    def row(self, record: Record) -> Value | None:
        """Return the content of a visible row."""
        return self.view.content(record)

    def value(self, answer: Answer) -> Value | None:
        """Return the row of an answer; None if the answer is that there is none."""
        assert self.view.program.stored_value
        if answer.value is None:
            return None
        try:
            return self.view.program.stored_value(text(answer.key), answer.value)
        except Unreadable as error:
            return (error.why,)

    def progressed(self) -> Iterator[tuple[Output, Progress]]:
        """Go through the rows that the model knows, with the records that they hold."""
        for outputs in self.view.outputs.values():
            yield from ((output, output.progress) for output in outputs if not output.anomaly)

    def progress(self, answer: Answer) -> Progress | Anomaly:
        """Return how many of its key's records an answer holds."""
        view = self.view
        assert view.merged
        value = self.value(answer)
        if value is None:
            return tuple(0 for _ in view.merged.whole(answer.key))
        progress = (
            view.merged.progress(answer.key, value)
            if len(value) > 1
            else Diagnosis("phantom", str(value[0]))
        )
        if isinstance(progress, Diagnosis):
            said = f"{self.said(answer)}: {progress.why}"
            return view.anomaly(progress.name, said, answer.key)
        if not any(_is_seen(answer, record) for record in self._rows(answer.key, value)):
            return _unseen(self, answer)
        return progress

    def least(self, _key: bytes, before: Progress, /) -> Progress:
        """Return how far it was: the state of such a table is in its visible rows."""
        return before

    def keys(self) -> Set[bytes]:
        """Return the keys that the model has."""
        return self.view.states.keys()

    def name(self, progress: Progress) -> str:
        """Return the numbers of the records of its topics."""
        return str(progress)

    def holds(self, progress: Progress) -> str:
        """Return how many records of its topics an answer holds."""
        return f"holds {progress} records of its topics"

    def were_visible(self, progress: Progress) -> str:
        """Return that a row of so many records was visible."""
        return f"{progress} were visible"

    def _rows(self, key: bytes, value: Value) -> Iterator[Record]:
        """Go through the visible rows with this value."""
        for output in self.view.outputs.get(key, []):
            if not output.anomaly and self.view.program.value_of(output.record) == value:
                yield output.record


class OutputTable(Table):
    """The visible outputs of a key, each of which is a row; the last one is the key's.

    How far a row is, is its number among them. Of outputs that say the same, an answer is taken
    for the last one that was visible by then.
    """

    def __init__(self, view: View, contract: Contract) -> None:
        super().__init__(view)
        oracle = Itself(view.history, view.application.name, contract)
        self.compared = Compared.of(contract, oracle.unstable())
        if contract.asked and not self.compared.fields:
            raise NotOffered("no field of its answers is compared: each of them differs by itself")
        self._rows: dict[bytes, list[Value | None]] = {}

    def row(self, record: Record) -> Value | None:
        """Return what of an output is compared; None for a tombstone."""
        return self.compared.of_output(record.value)

    def value(self, answer: Answer) -> Value | None:
        """Return what of an answer is compared; None if there is no value for its key."""
        return self.compared.of_answer(answer.value)

    def progressed(self) -> Iterator[tuple[Output, Progress]]:
        """Go through the outputs, each with its number among those of its key."""
        for outputs in self.view.outputs.values():
            yield from ((output, (number,)) for number, output in enumerate(outputs, 1))

    def progress(self, answer: Answer) -> Progress | Anomaly:
        """Return the number of the output that an answer shows; 0 if it shows none."""
        value = self.value(answer)
        outputs = self.view.outputs.get(answer.key, [])
        numbers = (number for number, row in enumerate(self.rows(answer.key), 1) if row == value)
        seen = [number for number in numbers if _is_seen(answer, outputs[number - 1].record)]
        if seen:
            return (seen[-1],)
        return (0,) if value is None else _unseen(self, answer)

    def least(self, key: bytes, before: Progress, /) -> Progress:
        """Return how far it was, or how far back its outputs step after that.

        An at_least_once design may say an output again. The state before that output was its own.
        """
        if self.view.exactly_once:
            return before
        rows = self.rows(key)
        known = rows[: before[0]]
        return (
            min((known.index(row) for row in rows[before[0] :] if row in known), default=before[0]),
        )

    def keys(self) -> Set[bytes]:
        """Return the keys of all visible outputs."""
        return self.view.outputs.keys()

    def name(self, progress: Progress) -> str:
        """Return the number of an output."""
        return f"output {progress[0]}"

    def holds(self, progress: Progress) -> str:
        """Return which output an answer shows."""
        return f"is {self.name(progress)} of its key" if progress[0] else "is none of its outputs"

    def were_visible(self, progress: Progress) -> str:
        """Return that an output was visible."""
        return f"{self.name(progress)} was visible"

    def rows(self, key: bytes) -> list[Value | None]:
        """Return what is compared of each visible output of a key, in their order."""
        if key not in self._rows:
            outputs = self.view.outputs.get(key, [])
            self._rows[key] = [self.row(output.record) for output in outputs]
        return self._rows[key]


def shown(answer: Answer) -> str:
    """Return what was answered, for a person."""
    return "nothing" if answer.value is None else answer.value[:SHOWN]


def _unseen(table: Table, answer: Answer) -> Anomaly:
    said = f"{table.said(answer)}, which no reader of committed data saw then"
    return table.view.anomaly("uncommitted-visible", said, answer.key)


def _is_seen(answer: Answer, record: Record) -> bool:
    return record.offset < answer.stable.get(f"{record.topic}-{record.partition}", 0)
