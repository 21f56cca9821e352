"""Shrink a violated history to the few records that show the anomaly.

This is delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input",
2002). Records are left out as long as the check finds the same anomaly: with the same key, input
and values. Other anomalies that it finds are ignored.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from upheld.checks import CHECKS
from upheld.checks.dead_letters import ending_of
from upheld.checks.view import View, show, text, view_of
from upheld.history import History
from upheld.history.events import Claim, Record
from upheld.programs import DEAD_LETTERS, Unreadable
from upheld.programs.itself import BETWEEN
from upheld.verdicts import Anomaly, Outcome

SHOWN = 12  # records
WIDTH = 130  # characters


class Place(NamedTuple):
    """The place of a record in the log."""

    topic: str
    incarnation: int
    partition: int
    offset: int


@dataclass
class Shrunk:
    """The records that are enough for an anomaly, in the order they were seen."""

    anomaly: Anomaly
    records: list[Record]
    of: int
    view: View  # of these records alone

    def lines(self) -> Iterator[str]:
        """Describe the records.

        The first line counts them. Then each of the last records has a line: since when it was
        there, its place, and what it says.
        """
        yield f"{len(self.records)} of {self.of} records are enough for it" + (
            ", at last" if self.records[SHOWN:] else ""
        )
        prefix = f"{self.view.application.application_id}-"
        for record in self.records[-SHOWN:]:
            said = f"{record.seen_ms:>7} ms  {record.at.removeprefix(prefix)}  {self._said(record)}"
            yield said if len(said) <= WIDTH else f"{said[: WIDTH - 1]}…"

    def _said(self, record: Record) -> str:
        """Return the words for what a record says, makes or is."""
        if not record.visible or record.at in {record.at for record in self.view.unreadable}:
            return "cannot be read" if record.visible else "is aborted"
        for stage in self.view.stages:
            if record.topic == stage.table:
                try:
                    return f"shows {show(stage.program.value_of(record))}"
                except Unreadable as error:
                    return f"shows nothing: {error.why}"
            states = stage.states.get((self.anomaly.key or "").encode(), [])
            if concerned := next((s for s in states if s.source.at == record.at), None):
                return f"makes {show(concerned.value)}"
        said = text(record.value or b"a tombstone")
        if record.topic == self.view.application.topics.get(DEAD_LETTERS):
            ending = ending_of(record)
            reason = ending.reason if ending else None
            said = f"is a dead letter: {text(reason or b'')}"
        return said if said.isprintable() else repr(said)[1:-1]


@dataclass(frozen=True)
class _Search:
    """The search for the fewest records with which a claim still finds an anomaly."""

    history: History
    claim: Claim
    anomaly: Anomaly
    topics: frozenset[str]  # whose records may be left out
    until_s: float  # by the monotonic clock

    def records(self) -> Iterator[Record]:
        """Go through the records that may be left out."""
        return (record for record in self.history.of(Record) if record.topic in self.topics)

    def only(self, kept: Iterable[Place]) -> History:
        """Return the history without the records that are not kept."""
        places = set(kept)
        left = (
            event
            for event in self.history.events
            if not isinstance(event, Record)
            or event.topic not in self.topics
            or _place(event) in places
        )
        return History(list(left))

    def shows(self, kept: Iterable[Place]) -> bool:
        """Return whether the claim finds the anomaly with these records alone."""
        claim = self.claim
        try:
            found = CHECKS[claim.check](self.only(kept), claim.application, **claim.arguments)
        except (Outcome, LookupError, StopIteration, TypeError, ValueError, Unreadable):
            return False
        return any(_same(each, self.anomaly) for each in found)

    def fewest(self, kept: list[Place]) -> list[Place]:
        """Leave out ever smaller parts of records that show the anomaly, until time is up."""
        parts = 2
        while len(kept) > 1 and parts <= len(kept) and not self._is_over():
            size = -(-len(kept) // parts)
            if rest := self._without_a_part(kept, size):
                kept = rest
                parts = max(parts - 1, 2)
            elif size == 1:
                break
            else:
                parts = min(2 * parts, len(kept))
        return kept

    def _without_a_part(self, kept: list[Place], size: int) -> list[Place] | None:
        """Leave out the first part of that size without which the anomaly still shows."""
        for begin in range(0, len(kept), size):
            rest = kept[:begin] + kept[begin + size :]
            if not self._is_over() and self.shows(rest):
                return rest
        return None

    def _is_over(self) -> bool:
        return time.monotonic() >= self.until_s


def shrink(history: History, anomaly: Anomaly, seconds: float) -> Shrunk | None:
    """Find the fewest records that show an anomaly, within these seconds.

    Returns:
        None if the anomaly concerns no record, if no claim has found it, or if all records are
        needed.
    """
    claim = next((event for event in reversed(history.events) if isinstance(event, Claim)), None)
    if claim is None or not (anomaly.key or anomaly.source or anomaly.got):
        return None
    until_s = time.monotonic() + seconds
    search = _Search(history, claim, anomaly, _topics(view_of(history, claim.application)), until_s)
    places = _places(search.records())
    kept = places
    if anomaly.key:
        key = anomaly.key.encode()
        if view_of(history, claim.application).program.is_shared_out:
            key = key.rpartition(BETWEEN)[0] or key  # behind it is the partition of its input
        kept = _places(_of_key(search.records(), key))
    if not search.shows(kept):
        if kept is places or not search.shows(places):
            return None
        kept = places
    kept = search.fewest(kept)
    if len(kept) == len(places):
        return None
    left = search.only(kept)
    records = {
        _place(record): record for record in left.of(Record) if record.topic in search.topics
    }
    return Shrunk(
        anomaly,
        sorted(records.values(), key=lambda record: record.seen_ms),
        len(places),
        view_of(left, claim.application),
    )


def _topics(view: View) -> frozenset[str]:
    """Return the topics whose records may be left out: those that the application reads and writes.

    A run without a fault answers for the whole input alone, so none of that is left out then.
    """
    contract = view.application.contract
    inputs = () if contract and not contract.model else view.program.inputs
    return frozenset(
        (
            *(stage.table for stage in view.stages),
            *(view.application.topics[role] for role in view.program.further),
            *(view.application.topics[role] for role in inputs),
            *(letter.topic for letter in view.dead_letters),
        )
    )


def _place(record: Record) -> Place:
    return Place(record.topic, record.incarnation, record.partition, record.offset)


def _places(records: Iterable[Record]) -> list[Place]:
    """Return the place of each record, once."""
    return list(dict.fromkeys(map(_place, records)))


def _of_key(records: Iterable[Record], key: bytes) -> Iterator[Record]:
    """Go through the records with a key in their own key, or somewhere in their value.

    The key of an output with an identity has two parts.
    """
    names = key.split(BETWEEN)
    return (
        record
        for record in records
        if all(name in (record.key or b"") or name in (record.value or b"") for name in names)
    )


def _same(found: Anomaly, anomaly: Anomaly) -> bool:
    """Return whether it is the same anomaly; its text may count records that are gone."""
    return found.model_copy(update={"text": ""}) == anomaly.model_copy(update={"text": ""})
