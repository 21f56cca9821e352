"""batcher: `visits` (key = customerId) -> `batches` (key = customerId), events of one customer put
together.

A visit is ``{"customerId", "visitorId", "action"}``, a batch ``{"customerId", "events":
[{"visitorId", "action"}, …]}``, both JSON; visitorId is unique to its event. A customer's batch
goes out when it holds `threshold` events, at once; or when its first event has waited for
`interval_ms`; or when the design is closed gracefully. Then the next one begins empty.

Nulls are filtered; any other record that is no visit under its customer's key stops the design:
`poison`. The events of a customer stand in the order of the log, within a batch and from batch to
batch.

What was read and does not fill a batch waits, and its offset may be committed meanwhile: no crash
loses it. A wait counts from the later of append and `ready`, by a clock that nobody sets.

Parameters: threshold (events), interval_ms, commit_interval_ms.
"""

from collections.abc import Iterable
from typing import Any

from upheld.history.events import Record
from upheld.programs.contract import (
    Diagnose,
    Diagnosis,
    Program,
    State,
    States,
    Unreadable,
    loaded,
    readable,
)

Visit = tuple[str, str]  # visitorId, action


def visit(record: Record) -> Visit:
    """The event in an input record; Unreadable where it is none."""
    try:
        value = loaded(record.value or b"null")
        fields = value["customerId"], value["visitorId"], value["action"]
    except (ValueError, KeyError, TypeError) as error:
        raise Unreadable(f"{record.at} holds no visit: {error!r}") from None
    if len(value) > len(fields) or not all(isinstance(field, str) for field in fields):
        raise Unreadable(f"{record.at} holds no visit: it has other fields, or no text in them")
    if fields[0].encode() != record.key:
        raise Unreadable(f"{record.at} has another customer in its key than in its value")
    return fields[1:]


def model(inputs: Iterable[Record]) -> States:
    """Every event once, per customer in the order of its partition; one state is one event."""
    states: States = {}
    for record in inputs:
        if record.value is not None:
            key = record.key or b""
            states.setdefault(key, []).append(State(key, visit(record), record, (), ""))
    return states


def value_of(record: Record) -> tuple[Any, ...]:
    """The events of a batch; Unreadable where it is none of the contract's, or empty."""
    try:
        batch = loaded(record.value or b"null")
        events = tuple((event["visitorId"], event["action"]) for event in batch["events"])
        fields = {*batch, *(name for event in batch["events"] for name in event)}
    except (ValueError, KeyError, TypeError) as error:
        raise Unreadable(f"{record.at} is no batch of the contract: {error!r}") from None
    if fields != {"customerId", "events", "visitorId", "action"} or not all(
        isinstance(t, str) for e in events for t in e
    ):
        raise Unreadable(
            f"{record.at} is no batch of the contract: it has other fields, or is empty"
        )
    if batch["customerId"].encode() != record.key:
        raise Unreadable(f"{record.at} has another customer in its key than in its value")
    return events


def diagnosis(inputs: list[Record]) -> Diagnose:
    """Name the anomaly of an event that is none of the customer's."""
    by_visitor = {visit(record)[0]: record for record in readable(inputs, visit)}

    def diagnose(key: bytes, value: tuple[Any, ...], _: list[State]) -> Diagnosis:
        record = by_visitor.get(value[0])
        if record is None:
            return Diagnosis("phantom", f"nobody sent an event {value[0]!r}")
        if not record.visible:
            return Diagnosis(
                "uncommitted-visible", f"it is {record.at}, which was aborted upstream", record
            )
        why = "the event of another customer" if record.key != key else "it, with another action"
        return Diagnosis("phantom", f"{record.at} is {why}", record)

    return diagnose


BATCHER = Program(
    name="batcher",
    contract=__doc__,
    reads="visits",
    writes="batches",
    conflates=False,
    holds_back=True,
    parameters={"commit_interval_ms": 100, "threshold": 100, "interval_ms": 1_000},
    model=model,
    value_of=value_of,
    items=list,
    lineage_of=lambda _: (None, ()),
    diagnosis=diagnosis,
)
