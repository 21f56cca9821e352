"""The needs of checks: evidence without which a verdict means nothing.

A history from which lines were removed may satisfy a check that has nothing left to compare. So
each check declares its needs. If one is lacking, the claim is inconclusive, in a run
and in `judge`.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from enum import StrEnum
from typing import Final, NamedTuple

from upheld.checks.view import view_of
from upheld.families import Family
from upheld.history import History
from upheld.history.events import (
    Batch,
    Committed,
    Ends,
    Event,
    Fed,
    InputRested,
    Instance,
    Mark,
    Measured,
    Memory,
    Names,
    Record,
    Stored,
    Told,
)
from upheld.history.marks import Happening, Look
from upheld.history.outputs import by_output


class Need(StrEnum):
    """A kind of evidence; its value completes “the history lacks …”."""

    INPUT = "records of the input as it was fed"
    START = "a start of an instance"
    MARK = "a mark of the fault"
    COMMIT = "a look at the committed offsets"
    CUT = "a look at the committed offsets with every instance down"
    BATCHES = "the batches of the outputs"
    REST = "a rest of the input"
    STORE = "a look at the store"
    EFFECTS = "a look at the side effects"
    FAILURE = "a loud stop of an instance"
    SIZES = "two sizes of the state"
    MEMORY = "two sizes of the memory"
    NAMES = "the names on the broker"
    NAMES_TWICE = "the names on the broker before and after"
    PAUSED = "the mark of a pause with a transaction open"
    ENDS_OF_A_PAUSE = "the ends of the outputs before the paused instance goes on"
    ENDS_OF_A_SWITCH = "the ends of the outputs between two clusters"
    GAP = "the mark of records that fell off the log"
    TORN_FILE = "the mark of a torn file"


Struck = Collection[Collection[Family]]  # of each fault so far, the families that its mark may have


class _Look(NamedTuple):
    """A history before a claim, the application, and the faults that the scenario made by then."""

    history: History
    application: str
    struck: Struck

    def of(self, kind: type[Event], number: int = 1) -> bool:
        """Return whether the application has that many events of a kind."""
        events = self.history.of(kind)
        found = (e for e in events if getattr(e, "application", "") == self.application)
        return sum(1 for _ in found) >= number

    def lives(self, event: str) -> bool:
        """Return whether an instance of the application had an event in its life."""
        lives = self.history.of(Instance)
        return any(e.event == event and e.application == self.application for e in lives)

    def marked(self, happening: Happening) -> bool:
        """Return whether there is a mark with a code."""
        return any(mark.happening is happening for mark in self.history.of(Mark))

    def looked(self, look: Look) -> bool:
        """Return whether the ends of the outputs were recorded at a moment."""
        ends = self.history.of(Ends)
        return any(e.look is look and e.application == self.application for e in ends)


def _has_input(look: _Look) -> bool:
    """Return whether all records that were fed are there, and at least one."""
    inputs = view_of(look.history, look.application).log
    fed = [e for e in look.history.of(Fed) if e.application == look.application]
    if not fed:  # by a version that did not count them
        return bool(inputs)
    there = Counter((record.topic, record.partition) for record in inputs)
    found = {f"{topic}-{partition}": count for (topic, partition), count in there.items()}
    return bool(inputs) and all(
        found.get(place, 0) >= count for place, count in fed[-1].records.items()
    )


def _has_marks(look: _Look) -> bool:
    """Return whether each fault so far left a mark of its family."""
    left = [mark.happening.family for mark in look.history.of(Mark) if mark.happening]
    return all(any(family in left for family in families) for families in look.struck)


def _has_batches(look: _Look) -> bool:
    """Return whether outputs came in batches that were looked at."""
    histories = by_output(look.history, look.application)
    tables = {view_of(history, look.application).table for history in histories}
    shown = {record.topic for record in look.history.of(Record) if record.visible}
    return tables & shown <= {batch.topic for batch in look.history.of(Batch)}


def _has_cut(look: _Look) -> bool:
    committed = look.history.of(Committed)
    return any(e.down and e.application == look.application for e in committed)


_HAS: Final[dict[Need, Callable[[_Look], bool]]] = {
    Need.INPUT: _has_input,
    Need.START: lambda look: look.lives("started"),
    Need.MARK: _has_marks,
    Need.COMMIT: lambda look: look.of(Committed),
    Need.CUT: _has_cut,
    Need.BATCHES: _has_batches,
    Need.REST: lambda look: look.of(InputRested),
    Need.STORE: lambda look: look.of(Stored),
    Need.EFFECTS: lambda look: look.of(Told),
    Need.FAILURE: lambda look: look.lives("failed"),
    Need.SIZES: lambda look: look.of(Measured, 2),
    Need.MEMORY: lambda look: look.of(Memory, 2),
    Need.NAMES: lambda look: look.history.count(Names) >= 1,
    Need.NAMES_TWICE: lambda look: look.history.count(Names) >= 2,
    Need.PAUSED: lambda look: look.marked(Happening.TRANSACTION_OPEN),
    Need.ENDS_OF_A_PAUSE: lambda look: look.looked(Look.BEFORE_ZOMBIE),
    Need.ENDS_OF_A_SWITCH: lambda look: look.looked(Look.HANDED_OVER),
    Need.GAP: lambda look: look.marked(Happening.INPUT_TRUNCATED),
    Need.TORN_FILE: lambda look: look.marked(Happening.FILE_TORN),
}


def lacking(
    needs: Collection[Need], history: History, application: str, struck: Struck
) -> Iterator[Need]:
    """Go through the needs of a check that a history does not meet.

    Args:
        needs: The needs that the check declares.
        history: The history as it was when the claim was made.
        application: The application that the claim is about.
        struck: Of each fault that the scenario made by then, the families that its mark may have.
    """
    look = _Look(history, application, struck)
    return (need for need in Need if need in needs and not _HAS[need](look))
