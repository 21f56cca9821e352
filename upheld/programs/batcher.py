"""batcher: `visits` -> `batches`, events of one customer put together.

The key of both topics is customerId. A visit is ``{"customerId", "visitorId", "action"}``, a batch
``{"customerId", "events": [{"visitorId", "action"}, …]}``, both JSON. A visitorId is unique to its
event. A visit lies where Kafka's default partitioner (murmur2) puts its customer. librdkafka's
default partitioner is another one (CRC32).

A customer's batch goes out for one of three reasons. It holds `threshold` events: then it goes out
at once. Or its first event has waited for `interval_ms`. Or the design is closed gracefully. Then
the next batch begins empty.

Nulls are filtered. Any other record that is no visit under its customer's key stops the design:
`poison`. The events of a customer stand in the order of the log, within a batch and from batch to
batch.

Events that were read and do not fill a batch wait. Their offsets may be committed meanwhile, and no
crash loses them. A wait counts from the later of append and `ready`, by a clock that is never set.

Parameters: threshold (events), interval_ms, commit_interval_ms.
"""

from collections.abc import Iterable
from typing import cast

from upheld.history.events import Record
from upheld.programs.contract import (
    Diagnose,
    Diagnosis,
    Program,
    State,
    States,
    Unreadable,
    Value,
    no_lineage,
    readable,
)
from upheld.reading import loaded

Visit = tuple[str, str]  # visitorId, action


def visit(record: Record) -> Visit:
    """Return the event in an input record.

    Raises:
        Unreadable: The record holds none.
    """
    try:
        value = loaded(record.value or b"null")
        customer = value["customerId"]
        event = (value["visitorId"], value["action"])
    except (ValueError, KeyError, TypeError) as error:
        raise Unreadable(f"{record.at} holds no visit: {error!r}") from None
    fields = (customer, *event)
    if len(value) > len(fields) or not all(isinstance(field, str) for field in fields):
        raise Unreadable(f"{record.at} holds no visit: it has other fields, or no text in them")
    if customer.encode() != record.key:
        raise Unreadable(f"{record.at} has another customer in its key than in its value")
    return event


def model(inputs: Iterable[Record]) -> States:
    """Make a state of every event, per customer in the order of its partition."""
    states: States = {}
    for record in inputs:
        if record.value is not None:
            key = record.key or b""
            states.setdefault(key, []).append(State(key, visit(record), record, (), ""))
    return states


def value_of(record: Record) -> tuple[Visit, ...]:
    """Return the events of a batch.

    Raises:
        Unreadable: The record is no batch of the contract, or an empty one.
    """
    try:
        batch = loaded(record.value or b"null")
        customer = batch["customerId"]
        events = tuple((event["visitorId"], event["action"]) for event in batch["events"])
        fields = {*batch, *(name for event in batch["events"] for name in event)}
    except (ValueError, KeyError, TypeError) as error:
        raise Unreadable(f"{record.at} is no batch of the contract: {error!r}") from None
    texts = [text for event in events for text in event]
    is_sound = isinstance(customer, str) and all(isinstance(text, str) for text in texts)
    if fields != {"customerId", "events", "visitorId", "action"} or not is_sound:
        raise Unreadable(
            f"{record.at} is no batch of the contract: it has other fields, or is empty"
        )
    if customer.encode() != record.key:
        raise Unreadable(f"{record.at} has another customer in its key than in its value")
    return events


def events_of(value: Value) -> list[Value]:
    """Return the events of a batch, each of which is a state."""
    return list(cast(tuple[Visit, ...], value))


def diagnosis(inputs: list[Record]) -> Diagnose:
    """Return a function that names the anomaly of an event that is no state."""
    by_visitor: dict[object, Record] = {
        visit(record)[0]: record for record in readable(inputs, visit)
    }

    def diagnose(key: bytes, value: Value, _: list[State]) -> Diagnosis:
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
    reads="visits",
    writes="batches",
    conflates=False,
    holds_back=True,
    parameters={"commit_interval_ms": 100, "threshold": 100, "interval_ms": 1_000},
    model=model,
    value_of=value_of,
    items=events_of,
    lineage_of=no_lineage,
    diagnosis=diagnosis,
)
