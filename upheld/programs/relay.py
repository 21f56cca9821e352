"""relay: `input` -> `output`, one record for one record.

The key, the headers and the timestamp are kept. The envelope's chain grows by the position that
the relay read the record from, with the topic's id or without it. A record of `input` that has a
key lies where Kafka's default partitioner (murmur2) puts the key. librdkafka's default partitioner
is another one (CRC32).

A relay is stateless. Under at_least_once it may step back after a crash and repeat records, in
order. It never reorders, skips or invents a record.

A record without a key or a value, or whose value is no Envelope, cannot be read. If the application
has a topic `dead_letters`, the record goes there, and nothing else comes of it. A dead letter has
the same key, value and headers. At the end of the headers it has four more, as text: `reason`,
which is not empty, and `topic`, `partition` and `offset` of where it was read. Or it has the six of
Kafka Streams (KIP-1034), in any order: `__streams.errors.exception`, which is not empty,
`__streams.errors.message` and `__streams.errors.stacktrace`, which may be null, and
`__streams.errors.topic`, `__streams.errors.partition` and `__streams.errors.offset`.

Under exactly_once a dead letter is there once, in the transaction that commits its offset. Under
at_least_once it is there before its offset is committed, and after a crash maybe again. Without
such a topic the record stops the design: `poison`.
"""

from collections.abc import Iterable
from functools import lru_cache
from operator import itemgetter
from sys import intern
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from upheld.generators.envelope_pb2 import Envelope
from upheld.history.events import Record
from upheld.programs.contract import (
    Chain,
    Diagnose,
    Diagnosis,
    Hop,
    Lineage,
    Place,
    Program,
    State,
    States,
    Unreadable,
    Value,
    made,
)

Postings = tuple[tuple[str, int], ...]  # account and cents
# Of inputs: the rows of a run have the same ones, and each row folds them several times.
ENTRIES_KEPT: Final = 1 << 14


class Entry(NamedTuple):
    """The content of an input's envelope, as plain values."""

    id: str
    timestamp_ms: int
    chain: Chain
    postings: Postings
    by_account: dict[str, list[int]]  # the amounts of each account, in order


class Content(NamedTuple):
    """An envelope as a value that compares."""

    id: str
    timestamp_ms: int
    chain: tuple[Hop | Place, ...]
    postings: Postings


def chain_of(envelope: Envelope) -> Chain:
    """Return the hops as plain values."""
    return tuple([made(Hop, (h.topic, h.partition, h.offset, h.topic_id)) for h in envelope.chain])


def postings_of(envelope: Envelope) -> Postings:
    """Return the postings as plain values: account and cents."""
    return tuple([(p.account, p.amount_cents) for p in envelope.postings])


def chain_after(record: Record, entry: Entry) -> Chain:
    """Return the entry's chain with the position that this record was read from.

    A topic that was deleted and made anew is another topic.
    """
    topic_id = b"%d" % record.incarnation if record.incarnation else b""
    return (*entry.chain, made(Hop, (record.topic, record.partition, record.offset, topic_id)))


def canonical_chain(chain: Chain) -> tuple[Hop | Place, ...]:
    """Return a chain as it compares.

    A design need not name the topic's id in its last hop.
    """
    return (*chain[:-1], chain[-1].place) if chain else chain


def decode(record: Record) -> Entry:
    """Return the entry of an input record.

    Raises:
        Unreadable: The record holds none.
    """
    try:
        return _entry(_demanded(record))
    except DecodeError as error:
        raise Unreadable(f"{record.at} holds no envelope: {error}") from None


@lru_cache(ENTRIES_KEPT)
def _entry(value: bytes) -> Entry:
    """Read an envelope.

    Raises:
        DecodeError: The value is none.
    """
    envelope = Envelope.FromString(value)
    # Each name is kept once.
    postings = tuple([(intern(account), cents) for account, cents in postings_of(envelope)])
    by_account = dict[str, list[int]]()
    for account, cents in postings:
        by_account.setdefault(account, []).append(cents)
    return Entry(envelope.id, envelope.timestamp_ms, chain_of(envelope), postings, by_account)


def _demanded(record: Record) -> bytes:
    """Return the value of a record that has a key too, or raise Unreadable."""
    if record.key is None or record.value is None:
        raise Unreadable(f"{record.at} has no {'key' if record.key is None else 'value'}")
    return record.value


def _output(record: Record) -> Envelope:
    """Return the envelope of an output, or raise Unreadable.

    No two outputs are the same, so that none is kept.
    """
    try:
        return Envelope.FromString(_demanded(record))
    except DecodeError as error:
        raise Unreadable(f"{record.at} holds no envelope: {error}") from None


def model(inputs: Iterable[Record]) -> States:
    """Make a state of every input, per key in the order of its partition."""
    states: States = {}
    for record in inputs:
        entry = decode(record)
        chain = chain_after(record, entry)
        key = record.key or b""
        content = (entry.id, entry.timestamp_ms, canonical_chain(chain), entry.postings)
        state = made(State, (key, made(Content, content), record, chain, entry.id, None))
        states.setdefault(key, []).append(state)
    return states


def value_of(record: Record) -> Content:
    """Return the content of an output, or raise Unreadable."""
    envelope = _output(record)
    chain = canonical_chain(chain_of(envelope))
    content = (envelope.id, envelope.timestamp_ms, chain, postings_of(envelope))
    return made(Content, content)


def lineage_of(record: Record) -> Lineage:
    """Return the id and the chain that an output carries, or raise Unreadable."""
    envelope = _output(record)
    return Lineage(envelope.id, chain_of(envelope))


def diagnosis(inputs: list[Record]) -> Diagnose:
    """Return a function that names the anomaly of an output that is no state.

    It shows an aborted input, a changed envelope, or nothing that is known.
    """
    by_position = {Place(r.topic, r.partition, r.offset): r for r in inputs}

    def diagnose(_: bytes, value: Value, states: list[State]) -> Diagnosis:
        content = Content._make(value)
        record = by_position.get(Place(*content.chain[-1][:3])) if content.chain else None
        if record is None:
            return Diagnosis(
                "phantom", f"no input has the position that its chain ends in (id {content.id!r})"
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
