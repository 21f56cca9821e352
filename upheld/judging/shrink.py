"""A violated history, shrunk: the few records that show an anomaly all the same, out of the
thousands that came with it.

By delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input",
2002): records are left out as long as the check finds the same anomaly, of the same key, input and
values. What it finds besides is of no interest here.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from upheld.checks import CHECKS
from upheld.checks.view import View, show, text, view_of
from upheld.history import History
from upheld.history.events import Claim, Record
from upheld.programs import DEAD_LETTERS, Unreadable
from upheld.verdicts import Anomaly, Outcome

SHOWN, WIDTH = 12, 130

Place = tuple[str, int, int, int]  # topic, incarnation, partition, offset


@dataclass
class Shrunk:
    """The records that are enough for an anomaly, in the order in which they were seen."""

    anomaly: Anomaly
    records: list[Record]
    of: int
    view: View  # of nothing but these

    def lines(self) -> Iterator[str]:
        """What is left of what, then a line for each of the last records: since when it was there,
        where, and what it says.
        """
        yield f"{len(self.records)} of {self.of} records are enough for it" + (
            ", at last" if self.records[SHOWN:] else ""
        )
        prefix = f"{self.view.application.application_id}-"
        for record in self.records[-SHOWN:]:
            said = f"{record.seen_ms:>7} ms  {record.at.removeprefix(prefix)}  {self._said(record)}"
            yield said if len(said) <= WIDTH else f"{said[: WIDTH - 1]}…"

    def _said(self, record: Record) -> str:
        if not record.visible or record.at in {flawed.at for flawed in self.view.flawed}:
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
            said = f"is a dead letter: {text(dict(record.headers).get('reason') or b'')}"
        return said if said.isprintable() else repr(said)[1:-1]


def shrink(history: History, anomaly: Anomaly, seconds: float) -> Shrunk | None:
    """The fewest records found in so long; None where it concerns no record, no claim has found it,
    or all are needed.
    """
    claim = next((event for event in reversed(history.events) if isinstance(event, Claim)), None)
    if claim is None or not (anomaly.key or anomaly.source or anomaly.got):
        return None
    until, view = time.monotonic() + seconds, view_of(history, claim.application)
    topics = {stage.table for stage in view.stages} | {
        view.application.topics[role] for role in view.program.inputs
    }
    topics |= {letter.topic for letter in view.dead_letters}
    places = list(dict.fromkeys(_place(r) for r in history.of(Record) if r.topic in topics))

    def only(kept: set[Place]) -> History:
        left = (
            e
            for e in history.events
            if not isinstance(e, Record) or e.topic not in topics or _place(e) in kept
        )
        return History(list(left))

    def still(kept: list[Place]) -> bool:
        try:
            found = CHECKS[claim.check](only(set(kept)), claim.application, **claim.arguments)
        except (Outcome, LookupError, StopIteration, TypeError, ValueError, Unreadable):
            return False
        return any(_same(each, anomaly) for each in found)

    kept = (
        list(dict.fromkeys(_place(r) for r in _of_key(history, topics, anomaly.key)))
        if anomaly.key
        else places
    )
    if not still(kept):
        if kept is places or not still(places):
            return None
        kept = places
    parts = 2
    while len(kept) > 1 and parts <= len(kept) and time.monotonic() < until:
        size = -(-len(kept) // parts)
        for begin in range(0, len(kept), size):
            if time.monotonic() < until and still(rest := kept[:begin] + kept[begin + size :]):
                kept, parts = rest, max(parts - 1, 2)
                break
        else:
            if size == 1:
                break
            parts = min(2 * parts, len(kept))
    if len(kept) == len(places):
        return None
    left = only(set(kept))
    records = {_place(r): r for r in left.of(Record) if r.topic in topics}
    return Shrunk(
        anomaly,
        sorted(records.values(), key=lambda r: r.seen_ms),
        len(places),
        view_of(left, claim.application),
    )


def _place(record: Record) -> Place:
    return record.topic, record.incarnation, record.partition, record.offset


def _of_key(history: History, topics: set[str], key: str) -> Iterator[Record]:
    """The records that speak of a key, by their own key or somewhere in their value."""
    name = key.encode()
    return (
        r
        for r in history.of(Record)
        if r.topic in topics and (name in (r.key or b"") or name in (r.value or b""))
    )


def _same(found: Anomaly, anomaly: Anomaly) -> bool:
    """Whether it is the same one; its text may count what is gone."""
    return found.model_copy(update={"text": ""}) == anomaly.model_copy(update={"text": ""})
