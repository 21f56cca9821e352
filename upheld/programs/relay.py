"""relay: `input` -> `output`, one record for one record.

The key, the headers and the timestamp are kept; the envelope's chain grows by the position that the
relay read the record from, with the topic's id or without it.

Stateless: under at_least_once it may step back after a crash and repeat, in order; it never
reorders, skips or invents.

A record without a key or a value, or whose value is no Envelope, cannot be read. Where the
application has a topic `dead_letters` it goes there, and nothing else comes of it: the same key,
value and headers, and four headers more at their end, as text: `reason`, which is not empty, and
`topic`, `partition` and `offset` of where it was read. Under exactly_once it is there once, in the
transaction that commits its offset; under at_least_once before that is committed, and after a crash
maybe again. Without such a topic it stops the design: `poison`.
"""

from collections.abc import Iterable
from functools import lru_cache
from operator import itemgetter
from sys import intern
from typing import Any, Final, NamedTuple

from google.protobuf.message import DecodeError

from upheld.generators.envelope_pb2 import Envelope
from upheld.history.events import Record
from upheld.programs.contract import Diagnose, Diagnosis, Program, State, States, Unreadable

Hop = tuple[str, int, int, bytes]  # topic, partition, offset, topic id
Chain = tuple[Hop, ...]
Postings = tuple[tuple[str, int], ...]  # account and cents
# Read of inputs: the rows of a run have the same ones, and each row folds them several times.
ENTRIES_KEPT: Final = 1 << 14


class Entry(NamedTuple):
    """What an envelope in an input holds, as plain values."""

    id: str
    timestamp_ms: int
    chain: Chain
    postings: Postings
    by_account: dict[str, list[int]]  # the amounts of each account, in order


def chain_of(envelope: Envelope) -> Chain:
    """The hops as plain tuples: topic, partition, offset, topic id."""
    return tuple([(h.topic, h.partition, h.offset, h.topic_id) for h in envelope.chain])


def postings_of(envelope: Envelope) -> Postings:
    """The postings as plain tuples: account and cents."""
    return tuple([(p.account, p.amount_cents) for p in envelope.postings])


def chain_after(record: Record, entry: Entry) -> Chain:
    """The entry's chain with the position that this record was read from; a topic made anew is
    another one.
    """
    topic_id = b"%d" % record.incarnation if record.incarnation else b""
    return (*entry.chain, (record.topic, record.partition, record.offset, topic_id))


def told(chain: Chain) -> tuple[Any, ...]:
    """A chain as it compares: whether its last position names the topic's id is the design's
    affair.
    """
    return (*chain[:-1], chain[-1][:3]) if chain else chain


def canonical(
    envelope_id: str, timestamp_ms: int, chain: Chain, postings: Postings
) -> tuple[Any, ...]:
    """An envelope as a value that compares."""
    return envelope_id, timestamp_ms, told(chain), postings


def decode(record: Record) -> Entry:
    """The entry that an input record holds, or Unreadable."""
    try:
        return _entry(_demanded(record))
    except DecodeError as error:
        raise Unreadable(f"{record.at} holds no envelope: {error}") from None


@lru_cache(ENTRIES_KEPT)
def _entry(value: bytes) -> Entry:
    """Read an envelope. Raises DecodeError where it is none."""
    envelope = Envelope.FromString(value)
    # Each name is kept once.
    postings = tuple([(intern(account), cents) for account, cents in postings_of(envelope)])
    by_account = dict[str, list[int]]()
    for account, cents in postings:
        by_account.setdefault(account, []).append(cents)
    return Entry(envelope.id, envelope.timestamp_ms, chain_of(envelope), postings, by_account)


def _demanded(record: Record) -> bytes:
    """The value of a record that has a key too, or Unreadable."""
    if record.key is None or record.value is None:
        raise Unreadable(f"{record.at} has no {'key' if record.key is None else 'value'}")
    return record.value


def _output(record: Record) -> Envelope:
    """The envelope that an output holds, or Unreadable.

    Each output is another one, so that none is kept.
    """
    try:
        return Envelope.FromString(_demanded(record))
    except DecodeError as error:
        raise Unreadable(f"{record.at} holds no envelope: {error}") from None


def model(inputs: Iterable[Record]) -> States:
    """Every input once, per key in the order of its partition."""
    states: States = {}
    for record in inputs:
        entry = decode(record)
        chain = chain_after(record, entry)
        key = record.key or b""
        value = canonical(entry.id, entry.timestamp_ms, chain, entry.postings)
        states.setdefault(key, []).append(State(key, value, record, chain, entry.id))
    return states


def value_of(record: Record) -> tuple[Any, ...]:
    """What an output says."""
    envelope = _output(record)
    return canonical(envelope.id, envelope.timestamp_ms, chain_of(envelope), postings_of(envelope))


def lineage_of(record: Record) -> tuple[str | None, Chain]:
    """The id and the chain that an output carries."""
    envelope = _output(record)
    return envelope.id, chain_of(envelope)


def diagnosis(inputs: list[Record]) -> Diagnose:
    """Name the anomaly of an output that is no state: an aborted input, a changed envelope, or
    nothing known.
    """
    by_address = {(r.topic, r.partition, r.offset): r for r in inputs}

    def diagnose(_: bytes, value: tuple[Any, ...], states: list[State]) -> Diagnosis:
        envelope_id, _, chain, _ = value
        record = by_address.get(chain[-1][:3]) if chain else None
        if record is None:
            return Diagnosis(
                "phantom", f"no input has the position that its chain ends in (id {envelope_id!r})"
            )
        if not record.visible:
            return Diagnosis(
                "uncommitted-visible", f"it repeats {record.at}, which was aborted upstream", record
            )
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
    address=itemgetter(0),  # the envelope's id
    lineage_of=lineage_of,
    diagnosis=diagnosis,
)
