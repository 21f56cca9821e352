"""relay: `input` -> `output`, one record for one record.

The key, the headers and the timestamp are kept; the envelope's chain grows by the position that the relay read the record from,
with the topic's id or without it.
Stateless: under at_least_once it may step back after a crash and repeat, in order; it never reorders, skips or invents.
A record without a key or a value, or whose value is no Envelope, cannot be read. Where the application has a topic
`dead_letters` it goes there, and nothing else comes of it: the same key, value and headers, and four headers more at their
end, as text: `reason`, which is not empty, and `topic`, `partition` and `offset` of where it was read. Under exactly_once it
is there once, in the transaction that commits its offset; under at_least_once before that is committed, and after a crash
maybe again. Without such a topic it stops the design: `poison`.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple

from google.protobuf.message import DecodeError

from streamgate.generators.envelope_pb2 import Envelope
from streamgate.history.events import Record
from streamgate.programs.contract import Diagnose, Diagnosis, Program, State, States, Unreadable

Chain = tuple[tuple[str, int, int, bytes], ...]
ENTRIES_KEPT: Final = 1 << 15  # decoded: the rows of a run read the same records, and each row folds them several times


class Entry(NamedTuple):
    """What an envelope holds, as plain values."""

    id: str
    timestamp_ms: int
    chain: Chain
    postings: tuple[tuple[str, int], ...]  # account and cents


def chain_of(envelope: Envelope) -> Chain:
    """The hops as plain tuples: topic, partition, offset, topic id."""
    return tuple((h.topic, h.partition, h.offset, h.topic_id) for h in envelope.chain)


def chain_after(record: Record, entry: Entry) -> Chain:
    """The entry's chain with the position that this record was read from; a topic made anew is another one."""
    topic_id = b"%d" % record.incarnation if record.incarnation else b""
    return (*entry.chain, (record.topic, record.partition, record.offset, topic_id))


def told(chain: Chain) -> tuple[Any, ...]:
    """A chain as it compares: whether its last position names the topic's id is the design's affair."""
    return (*chain[:-1], *(hop[:3] for hop in chain[-1:]))


def canonical(entry: Entry, chain: Chain) -> tuple[Any, ...]:
    """The entry as a value that compares."""
    return entry.id, entry.timestamp_ms, told(chain), entry.postings


def decode(record: Record) -> Entry:
    """The entry that a record holds, or Unreadable."""
    if record.key is None or record.value is None:
        raise Unreadable(f"{record.at} has no {'key' if record.key is None else 'value'}")
    try:
        return _entry(record.value)
    except DecodeError as error:
        raise Unreadable(f"{record.at} holds no envelope: {error}") from None


@lru_cache(ENTRIES_KEPT)
def _entry(value: bytes) -> Entry:
    """Decode an envelope. Raises DecodeError where it is none."""
    envelope = Envelope.FromString(value)
    postings = tuple((posting.account, posting.amount_cents) for posting in envelope.postings)
    return Entry(envelope.id, envelope.timestamp_ms, chain_of(envelope), postings)


def model(inputs: Iterable[Record]) -> States:
    """Every input once, per key in the order of its partition."""
    states: States = {}
    for record in inputs:
        entry = decode(record)
        chain = chain_after(record, entry)
        key = record.key or b""
        states.setdefault(key, []).append(State(key, canonical(entry, chain), record, chain, entry.id))
    return states


def value_of(record: Record) -> tuple[Any, ...]:
    """What an output says."""
    entry = decode(record)
    return canonical(entry, entry.chain)


def lineage_of(record: Record) -> tuple[str | None, Chain]:
    """The id and the chain that an output carries."""
    entry = decode(record)
    return entry.id, entry.chain


def diagnosis(inputs: list[Record]) -> Diagnose:
    """Name the anomaly of an output that is no state: an aborted input, a changed envelope, or nothing known."""
    by_address = {(r.topic, r.partition, r.offset): r for r in inputs}

    def diagnose(_: bytes, value: tuple[Any, ...], states: list[State]) -> Diagnosis:
        envelope_id, _, chain, _ = value
        record = by_address.get(chain[-1][:3]) if chain else None
        if record is None:
            return Diagnosis("phantom", f"no input has the position that its chain ends in (id {envelope_id!r})")
        if not record.visible:
            return Diagnosis("uncommitted-visible", f"it repeats {record.at}, which was aborted upstream", record)
        due = next((state for state in states if state.source is record), None)
        why = f"it is made from {record.at}, but key, id, timestamp, postings or chain were changed"
        return Diagnosis("phantom", why, record, due)

    return diagnose


RELAY = Program(
    name="relay",
    contract=__doc__,
    reads="input",
    writes="output",
    conflates=False,
    parameters={"commit_interval_ms": 100},
    model=model,
    value_of=value_of,
    lineage_of=lineage_of,
    diagnosis=diagnosis,
)
