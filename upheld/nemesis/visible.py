"""The visible outputs of an application, placed among the states of its model."""

from collections.abc import Iterable, Iterator
from typing import Any

from upheld.checks.view import view_of
from upheld.kafka.consumers import Position, ReadMessage
from upheld.kafka.reader import recorded
from upheld.programs import States, Unreadable
from upheld.trial.application import Application
from upheld.trial.trial import Trial

Value = tuple[Any, ...]  # of a state, in a form that compares


class Visible:
    """The visible outputs of an application, read again and again while it runs."""

    def __init__(self, trial: Trial, application: Application) -> None:
        self._trial = trial
        self._application = application
        self._position: Position = dict.fromkeys(range(application.partitions), 0)
        # Of each output: its key, and the states that it shows.
        self._items: list[tuple[bytes, list[Value]]] = []
        # key and state -> which of the key's states it is, from 1
        self._places: dict[tuple[bytes, Value], int] = {}
        self.states: States = {}
        self.shown: dict[bytes, int] = {}  # key -> how many of its states came out

    def look(self) -> None:
        """Read the new outputs, and place them among the states.

        If the model has other states than before, all outputs are placed anew.
        """
        application = self._application
        if application.program.interleaved or application.program.is_shared_out:
            self._look_at_all()
            return
        messages = self._trial.reading.records(application.writes, self._position, committed=True)
        new = list(self._items_of(messages))
        self._items += new
        states = view_of(self._trial.history, application.name).states
        if states is not self.states:
            self._number(states)
            new = self._items
        for key, items in new:
            count = max(self._places.get((key, value), 0) for value in items)
            if count > self.shown.get(key, 0):
                self.shown[key] = count

    def _look_at_all(self) -> None:
        """Place the outputs of an application whose inputs have no mutual order.

        The outputs say in which order these were read.
        """
        self._trial.probes.observe(self._application)
        view = view_of(self._trial.history, self._application.name)
        self.states = view.states
        self.shown = {
            key: 1 + max(output.index for output in outputs)
            for key, outputs in view.outputs.items()
            if key in view.states
        }

    def _number(self, states: States) -> None:
        """Give the states of each key numbers, and forget what was shown."""
        self.states = states
        self.shown = {}
        self._places = {}
        for key, each in states.items():
            for number, state in enumerate(each, 1):
                self._places.setdefault((key, state.value), number)

    def _items_of(self, messages: Iterable[ReadMessage]) -> Iterator[tuple[bytes, list[Value]]]:
        """Yield the key of each output and the states that it shows; skip unreadable ones."""
        program = self._application.program
        for record in recorded(messages, lambda _partition, _offset: 0):
            try:
                items = program.items(program.value_of(record))
            except Unreadable:
                continue  # the checks will name it
            if record.key is not None:
                yield record.key, items
