"""ledger: `entries` -> `balances`, a row of sums for each account.

The key of `entries` is the branch, and its value an Envelope. The key of `balances` is the account,
and its value JSON: ``{"account", "balance_cents", "postings", "applied": {"topic", "partition",
"offset"}}``, integers only. An account belongs to one branch. A branch's entries lie where Kafka's
default partitioner (murmur2) puts its key; librdkafka's default partitioner is another one (CRC32).
So all entries of an account lie in one partition, until partitions are added. An entry fans out
into postings of several accounts, and one account may occur twice: its postings are one collection
under one offset.

``applied`` is the entry's first hop (its own position if the chain is empty). An entry with the
same topic, partition and topic id, and an offset not above it, is a duplicate and is discarded. Any
other first hop replaces it. A topic that was deleted and made anew is another topic.

The row's headers are the ``id`` and the ``chain`` of the last entry applied, and its timestamp is
that entry's. The header ``chain`` is an Envelope that holds the chain alone, the ledger's own read
position last.

A record without a key or a value, or whose value is no Envelope, goes to `dead_letters` or stops
the design, as relay says.

Parameters: commit_interval_ms; or store and persistence_interval_ms, and then the mode is
at_least_once. With a store, outputs are acknowledged before states are stored, and states are
stored before offsets are committed. The states are those of the stage `balances`, by account, with
the row's fields and any others.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from upheld.generators.envelope_pb2 import Envelope
from upheld.history.events import Record
from upheld.programs.contract import (
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
    readable,
)
from upheld.programs.relay import Entry, chain_after, chain_of, decode
from upheld.reading import loaded

LARGEST: Final = 1 << 63  # of a difference: Python prints no number of thousands of digits
Values = dict[bytes, set[Value]]  # the values of each key's states
# The cents that an entry adds to each key, posting by posting.
Collections = Callable[[Record, Entry], dict[str, list[int]]]


class Sums(NamedTuple):
    """The value of a row."""

    balance_cents: int
    postings: int
    applied: Place


class Effect(NamedTuple):
    """The sums that a record adds to one account."""

    record: Record
    cents: int
    postings: int


def by_account(_: Record, entry: Entry) -> dict[str, list[int]]:
    """Return the entry's postings by account."""
    return entry.by_account


@dataclass(slots=True)
class _Account:
    """One account while entries are folded: its sums, and its states so far."""

    key: bytes
    applied: Hop
    balance_cents: int = 0
    postings: int = 0
    states: list[State] = field(default_factory=list)

    def has(self, first: Hop) -> bool:
        """Return whether an entry with this first hop is a duplicate."""
        applied = self.applied
        return (
            first.offset <= applied.offset
            and first.partition == applied.partition
            and first.topic == applied.topic
            and first.topic_id == applied.topic_id
        )


def model(
    inputs: Iterable[Record], collections: Collections = by_account, *, forgetful: bool = False
) -> States:
    """Fold entries into the states of every account.

    Args:
        inputs: The records of the input.
        collections: Returns the cents that an entry adds to each key.
        forgetful: Discard no duplicate, to diagnose a wrong sum.

    Raises:
        Unreadable: A record is no entry.
    """
    accounts: dict[str, _Account] = {}
    for record in inputs:
        entry = decode(record)
        chain = chain_after(record, entry)
        first = chain[0]
        position = first.place
        for name, amounts in collections(record, entry).items():
            account = accounts.get(name)
            if account is None:
                account = accounts[name] = _Account(name.encode(), first)
            elif not forgetful and account.has(first):
                continue
            account.applied = first
            account.balance_cents += sum(amounts)
            account.postings += len(amounts)
            value = made(Sums, (account.balance_cents, account.postings, position))
            state = made(State, (account.key, value, record, chain, entry.id, None))
            account.states.append(state)
    return {account.key: account.states for account in accounts.values()}


def value_of(record: Record, key: str = "account") -> Sums:
    """Return the sums of a row; `key` is the field of its key.

    Raises:
        Unreadable: The row breaks the contract.
    """
    try:
        row = loaded(record.value or b"null")
        applied = row["applied"]
        numbers = (row["balance_cents"], row["postings"], applied["partition"], applied["offset"])
    except (ValueError, KeyError, TypeError) as error:
        raise Unreadable(f"{record.at} is no row of the contract: {error!r}") from None
    if not all(type(number) is int for number in numbers):
        raise Unreadable(f"{record.at} holds a number that is no integer")
    fields = {key, "balance_cents", "postings", "applied"}
    if set(row) != fields or set(applied) != {"topic", "partition", "offset"}:
        raise Unreadable(f"{record.at} has other fields than {sorted(fields)}")
    if not all(isinstance(name, str) for name in (row[key], applied["topic"])):
        raise Unreadable(f"{record.at} holds a name that is no text")
    if row[key].encode() != record.key:
        raise Unreadable(f"{record.at} has another {key} in its key than in its value")
    position = Place(applied["topic"], applied["partition"], applied["offset"])
    return Sums(row["balance_cents"], row["postings"], position)


def stored_value(key: str, value: str, name: str = "account") -> Sums:
    """Return the sums of a stored state; it may have fields beside a row's.

    Args:
        key: The key under which it is stored.
        value: The state, as JSON.
        name: The field of the key.

    Raises:
        Unreadable: The state breaks the contract.
    """
    fields = (name, "balance_cents", "postings", "applied")
    try:
        row = {name: each for name, each in loaded(value).items() if name in fields}
        row["applied"] = {name: row["applied"][name] for name in ("topic", "partition", "offset")}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unreadable(f"what is stored for {key} is no row of the contract: {error!r}") from None
    text = json.dumps(row).encode()
    return value_of(
        Record(
            topic="the store", partition=0, offset=0, timestamp_ms=0, key=key.encode(), value=text
        ),
        name,
    )


def lineage_of(record: Record) -> Lineage:
    """Return the id and the chain in a row's headers, or raise Unreadable."""
    headers = dict(record.headers)
    try:
        chain = chain_of(Envelope.FromString(headers.get("chain") or b""))
    except DecodeError as error:
        raise Unreadable(f"{record.at} has a header `chain` that is no Envelope: {error}") from None
    return Lineage((headers.get("id") or b"").decode(errors="replace") or None, chain)


class Diagnostician:
    """Names the anomaly of a row that is no state.

    It is the mistake that would give just this row. The folds that it compares with are made once,
    for all wrong rows.
    """

    def __init__(self, inputs: list[Record], collections: Collections = by_account) -> None:
        self._inputs = list(readable(inputs, decode))
        self._collections = collections

    @cached_property
    def _counting_aborted(self) -> Values:
        return _values(model(self._inputs, self._collections))

    @cached_property
    def _counting_repeats(self) -> Values:
        visible = (record for record in self._inputs if record.visible)
        return _values(model(visible, self._collections, forgetful=True))

    @cached_property
    def _by_first_hop(self) -> dict[Place, Record]:
        return {
            chain_after(record, decode(record))[0].place: record
            for record in reversed(self._inputs)
        }

    @cached_property
    def _effects(self) -> dict[str, list[Effect]]:
        """The effects of every record on each account, aborted ones too."""
        effects: dict[str, list[Effect]] = {}
        for record in self._inputs:
            for account, amounts in self._collections(record, decode(record)).items():
                effect = Effect(record, sum(amounts), len(amounts))
                effects.setdefault(account, []).append(effect)
        return effects

    def __call__(self, key: bytes, value: Value, states: list[State]) -> Diagnosis:
        """Compare with the state of the same applied position.

        If no state has it, look at that position.
        """
        row = Sums._make(value)
        sums = [Sums._make(state.value) for state in states]
        nearest = min(
            (index for index, each in enumerate(sums) if each.applied == row.applied),
            key=lambda index: abs(sums[index].postings - row.postings),
            default=None,
        )
        effects = self._effects.get(key.decode(errors="replace"), [])
        if value in self._counting_aborted.get(key, ()):
            blame = next(effect.record for effect in effects if not effect.record.visible)
            why = f"it is right only if what was aborted counts, as {blame.at}"
            due = None if nearest is None else states[nearest]
            return Diagnosis("uncommitted-visible", why, blame, due)
        if nearest is None:
            is_repeated = value in self._counting_repeats.get(key, ())
            return self._nowhere(row, effects, is_repeated=is_repeated)
        before = sums[nearest - 1] if nearest else None
        return self._torn(row, before, states[nearest]) or self._beside(
            row, states[nearest], effects
        )

    def _nowhere(self, row: Sums, effects: list[Effect], *, is_repeated: bool) -> Diagnosis:
        """Diagnose a row whose applied position no state has.

        The record at that position tells.
        """
        record = self._by_first_hop.get(row.applied)
        if record is None:
            return Diagnosis("phantom", "no entry has its applied position")
        said = f"its applied position is {record.at}, "
        if all(record is not effect.record for effect in effects):
            return Diagnosis("phantom", said + "which has no posting of this account", record)
        if not record.visible:
            return Diagnosis("uncommitted-visible", said + "which was aborted upstream", record)
        why = "a duplicate, applied again" if is_repeated else "a duplicate that changes nothing"
        return Diagnosis("duplicated", said + why, record)

    def _torn(self, row: Sums, before: Sums | None, due: State) -> Diagnosis | None:
        """Diagnose a row that holds some of an entry's postings; None if it does not."""
        amounts = self._collections(due.source, decode(due.source))[due.key.decode()]
        held = row.postings - (before.postings if before else 0)
        if not 0 < held < len(amounts):
            return None
        cents = row.balance_cents - (before.balance_cents if before else 0)
        if cents not in map(sum, combinations(amounts, held)):
            return None
        why = f"it holds {held} of the {len(amounts)} postings of {due.source.at}"
        return Diagnosis("torn", why, due.source, due)

    def _beside(self, row: Sums, due: State, effects: list[Effect]) -> Diagnosis:
        """Diagnose a row with a state's applied position and other sums.

        The difference tells.
        """
        right = Sums._make(due.value)
        cents = row.balance_cents - right.balance_cents
        postings = row.postings - right.postings
        if max(abs(cents), abs(postings)) > LARGEST:
            why = "it holds a number that no sum of the input reaches"
            return Diagnosis("phantom", why, due.source, due)
        if postings == 0:
            why = f"its postings are counted right, and {cents} cents are too many"
            return Diagnosis("phantom", why, due.source, due)
        place = (due.source.partition, due.source.offset)
        sign = 1 if postings > 0 else -1
        blamed = [
            effect.record
            for effect in effects
            if (effect.cents, effect.postings) == (sign * cents, sign * postings)
            and (effect.record.partition, effect.record.offset) <= place
        ]
        aborted = next((record for record in blamed if not record.visible), None)
        if postings > 0 and aborted:
            why = f"it holds {aborted.at}, which was aborted upstream"
            return Diagnosis("uncommitted-visible", why, aborted, due)
        visible = next((record for record in blamed if record.visible), None)
        name, said = ("duplicated", "too many") if postings > 0 else ("lost", "too few")
        why = f"{abs(postings)} postings {said} at {due.source.at}" + (
            f", just those of {visible.at}" if visible else ""
        )
        return Diagnosis(name, why, visible or due.source, due)


def _values(states: States) -> Values:
    values: Values = {}
    for key, each in states.items():
        values[key] = {state.value for state in each}
    return values


LEDGER = Program(
    name="ledger",
    reads="entries",
    writes="balances",
    conflates=True,
    parameters={"commit_interval_ms": 100},
    model=model,
    value_of=value_of,
    lineage_of=lineage_of,
    diagnosis=Diagnostician,
    stored_value=stored_value,
)
