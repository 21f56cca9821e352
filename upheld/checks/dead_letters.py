"""Checks of dead letters: just the records that cannot be read, as they were.

A dead letter ends in headers that say why and where it was read. There are two sets of names for
them: the suite's own, and those that Kafka Streams writes (KIP-1034).
"""

from collections import defaultdict
from typing import NamedTuple

from upheld.checks.prefix import reached
from upheld.checks.registry import OUTPUTS, check
from upheld.checks.view import text, view_of
from upheld.history import History
from upheld.history.events import Committed, Instance, Record
from upheld.verdicts import Anomaly, Inconclusive

# The last headers of a dead letter, in this order.
ADDED = (
    "reason",
    "topic",
    "partition",
    "offset",
)
# The last headers of a dead letter of Kafka Streams, in any order. A message and a stack trace may
# be null: an exception need not have them.
STREAMS = "__streams.errors."
ADDED_BY_STREAMS = (
    "exception",
    "message",
    "stacktrace",
    "topic",
    "partition",
    "offset",
)


Headers = tuple[tuple[str, bytes | None], ...]


class Ending(NamedTuple):
    """The reason and the place of a dead letter, by its last headers."""

    reason: bytes | None
    place: str  # topic-partition@offset
    kept: Headers  # the headers before them, which are the record's


def ending_of(letter: Record) -> Ending | None:
    """Read the last headers of a dead letter; None if they are of neither set."""
    before, last = letter.headers[: -len(ADDED)], letter.headers[-len(ADDED) :]
    if tuple(name for name, _ in last) == ADDED:
        return _ending(before, "reason", dict(last))
    before = letter.headers[: -len(ADDED_BY_STREAMS)]
    last = letter.headers[-len(ADDED_BY_STREAMS) :]
    said = {name.removeprefix(STREAMS): value for name, value in last if name.startswith(STREAMS)}
    if len(last) == len(said) and said.keys() == set(ADDED_BY_STREAMS):
        return _ending(before, "exception", said)
    return None


def _ending(kept: Headers, reason: str, said: dict[str, bytes | None]) -> Ending:
    topic, partition, offset = (text(said[name] or b"") for name in ADDED[1:])
    return Ending(said[reason], f"{topic}-{partition}@{offset}", kept)


@check(
    "dead-letters",
    anomalies=("lost", "duplicated", "phantom", "uncommitted-visible", "ahead-of-commit"),
    needs=OUTPUTS,
)
def set_aside(history: History, application: str) -> list[Anomaly]:
    """Check that every record that cannot be read is a dead letter, and no other is.

    A dead letter is the whole record, with the reason and its place.

    Under exactly_once it is there once. With every instance down, just the records below the
    committed offsets are.

    Under at_least_once it is there once or more often. With every instance down, at least the
    records below the committed offsets are, because outputs come before the commit.

    If no offsets say how far the outputs are, those below the last visible output take their place
    under exactly_once, and letters may lead. Where outputs may lead too, or come by a hop, nothing
    is due at rest.

    Inconclusive if all of the input can be read.
    """
    view = view_of(history, application)
    rest = _rest(history, application)
    may_repeat = not view.exactly_once
    may_lead = not view.exactly_once or history.begun.atomic == "shard"
    offsets = None if rest is None else rest.offsets
    if rest and rest.offsets is None:
        has_hop = history.begun.progress == "group-leads"
        offsets = {} if may_lead or has_hop else reached(view)
        may_lead = True
    inputs = {record.at: record for record in view.inputs}
    unreadable = {record.at: record for record in view.unreadable if record.visible}
    letters = defaultdict[str, list[Record]](list)
    found = list[Anomaly]()
    for letter in view.dead_letters:
        ending = ending_of(letter)
        place = ending.place if ending else ""
        letters[place].append(letter)
        if ending and (record := unreadable.get(place)):
            found += _changed(letter, ending, record)
        else:
            found.append(_misplaced(letter, place, inputs.get(place)))
    for place, record in unreadable.items():
        is_due = offsets is None or record.offset < offsets.get(
            f"{record.topic}-{record.partition}", 0
        )
        seen = letters[place]
        if is_due and not seen:
            said = f"{place} cannot be read, was passed, and is in no dead letter"
            found.append(_anomaly("lost", said, record))
        elif seen and not is_due and not may_lead:
            said = f"{place} is in the dead letter {seen[0].at}, and the group has not committed it"
            found.append(_anomaly("ahead-of-commit", said, record, seen[0]))
        elif seen[1:] and not may_repeat:
            said = (
                f"{place} is in {len(seen)} dead letters, "
                f"{' and '.join(letter.at for letter in seen[:2])}"
            )
            found.append(_anomaly("duplicated", said, record, seen[1]))
    if not (unreadable or found):
        raise Inconclusive(
            "all of the input can be read, so nothing shows what becomes of the rest"
        )
    return found


def _rest(history: History, application: str) -> Committed | None:
    """Return the last look at the committed offsets if every instance is down; None if one runs.

    Then all of the input is to be done.
    """
    rests: Committed | None = None
    for event in history.events:
        if isinstance(event, Committed) and event.application == application and event.down:
            rests = event
        elif (
            isinstance(event, Instance)
            and event.application == application
            and event.event == "started"
        ):
            rests = None
    return rests


def _changed(letter: Record, ending: Ending, record: Record) -> list[Anomaly]:
    """Return the differences between a dead letter and its record."""
    found = list[Anomaly]()
    said = f"the dead letter {letter.at} of {record.at} has "
    for name, has, had in (("key", letter.key, record.key), ("value", letter.value, record.value)):
        if has != had:
            found.append(
                _anomaly(
                    "phantom",
                    f"{said}the {name} {has!r:.80} instead of {had!r:.80}",
                    record,
                    letter,
                )
            )
    if not ending.reason:
        found.append(_anomaly("lost", f"{said}no reason", record, letter))
    if ending.kept != record.headers:
        left = iter(ending.kept)  # each header is looked for after the one before it
        missing = [name for name, value in record.headers if (name, value) not in left]
        how = f"no header {missing[0]!r}" if missing else "headers of which nobody knows"
        found.append(_anomaly("lost" if missing else "phantom", said + how, record, letter))
    return found


def _misplaced(letter: Record, place: str, record: Record | None) -> Anomaly:
    """Return why a dead letter is none of a visible record that cannot be read."""
    said = f"the dead letter {letter.at} "
    if not place:
        missing = f"{said}does not end in the headers {', '.join(ADDED)}, or in those of KIP-1034"
        return _anomaly("phantom", missing, record, letter)
    if record is None:
        return _anomaly("phantom", f"{said}is of {place}, where no input is", record, letter)
    if not record.visible:
        return _anomaly(
            "uncommitted-visible",
            f"{said}is of {place}, which was aborted upstream",
            record,
            letter,
        )
    return _anomaly("phantom", f"{said}is of {place}, which can be read", record, letter)


def _anomaly(name: str, said: str, record: Record | None, letter: Record | None = None) -> Anomaly:
    key, source = (text(record.key or b""), record.at) if record else (None, None)
    got = f"a dead letter at {letter.at}" if letter else None
    return Anomaly(name=name, text=said, key=key, source=source, got=got)
