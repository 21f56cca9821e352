"""ledger: `entries` (key = branch, value = Envelope) -> `balances` (key = account, value = JSON).

A row is ``{"account", "balance_cents", "postings", "applied": {"topic", "partition", "offset"}}``,
integers only. An account belongs to one branch, so all its entries lie in one partition. An entry
fans out into postings of several accounts, and one account may occur twice: they are one collection
under one offset. ``applied`` is the entry's first hop (its own position if the chain is empty): the
same topic, partition and topic id with an offset not above it is a duplicate and is discarded; any
other first hop replaces it. A topic that was deleted and made anew is another topic.

The row's headers are the ``id`` and the ``chain`` (an Envelope that holds the chain alone, the
ledger's own read position last) of the last entry applied, and its timestamp is that entry's.

A record without a key or a value, or whose value is no Envelope, goes to `dead_letters` or stops
the design, as relay says.

Parameters: commit_interval_ms; or store and persistence_interval_ms: then the mode is
at_least_once, outputs are acknowledged before states are stored (stage `balances`, by account, the
row's fields and any others), and these before offsets are committed.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any

from google.protobuf.message import DecodeError

from upheld.generators.envelope_pb2 import Envelope
from upheld.history.events import Record
from upheld.programs.contract import Diagnosis, Program, State, States, Unreadable, loaded, readable
from upheld.programs.relay import Chain, Entry, Hop, chain_after, chain_of, decode

Values = dict[bytes, set[tuple[Any, ...]]]  # balance in cents, postings, applied
Effect = tuple[Record, int, int]  # a record, and what it adds to one account: cents and postings


# What an entry adds to each key, in order.
Collections = Callable[[Record, Entry], dict[str, list[int]]]


def by_account(_: Record, entry: Entry) -> dict[str, list[int]]:
    """The entry's postings by account."""
    return entry.by_account


@dataclass(slots=True)
class _Account:
    """One account while entries are folded: what it holds, and its states so far."""

    key: bytes
    applied: Hop
    balance_cents: int = 0
    postings: int = 0
    states: list[State] = field(default_factory=list)

    def has(self, first: Hop) -> bool:
        """Whether an entry with this first hop is a duplicate."""
        topic, partition, offset, topic_id = self.applied
        return (
            first[2] <= offset
            and first[1] == partition
            and first[0] == topic
            and first[3] == topic_id
        )


def model(
    inputs: Iterable[Record], collections: Collections = by_account, *, forgetful: bool = False
) -> States:
    """Fold entries into the states of every account; ``forgetful`` discards no duplicate (to
    diagnose a wrong sum).
    """
    accounts: dict[str, _Account] = {}
    for record in inputs:
        entry = decode(record)
        chain = chain_after(record, entry)
        first = chain[0]
        place = first[:3]
        for name, amounts in collections(record, entry).items():
            account = accounts.get(name)
            if account is None:
                account = accounts[name] = _Account(name.encode(), first)
            elif not forgetful and account.has(first):
                continue
            account.applied = first
            account.balance_cents += sum(amounts)
            account.postings += len(amounts)
            value = (account.balance_cents, account.postings, place)
            account.states.append(State(account.key, value, record, chain, entry.id))
    return {account.key: account.states for account in accounts.values()}


def value_of(record: Record, key: str = "account") -> tuple[Any, ...]:
    """What a row says: balance in cents, postings, applied; Unreadable where it breaks the
    contract.
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
    return (
        row["balance_cents"],
        row["postings"],
        (applied["topic"], applied["partition"], applied["offset"]),
    )


def stored_value(key: str, value: str, name: str = "account") -> tuple[Any, ...]:
    """What a stored state says, whatever it holds beside a row's fields."""
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


def lineage_of(record: Record) -> tuple[str | None, Chain]:
    """The id and the chain in a row's headers."""
    headers = dict(record.headers)
    try:
        chain = chain_of(Envelope.FromString(headers.get("chain") or b""))
    except DecodeError as error:
        raise Unreadable(f"{record.at} has a header `chain` that is no Envelope: {error}") from None
    return (headers.get("id") or b"").decode(errors="replace") or None, chain


class Diagnostician:
    """Names the anomaly of a row that is no state, by the mistake that would give just this row.

    What it compares with is folded once, however many rows are wrong.
    """

    def __init__(self, inputs: list[Record], collections: Collections = by_account) -> None:
        self._inputs, self._collections = list(readable(inputs, decode)), collections

    @cached_property
    def _counting_aborted(self) -> Values:
        return _values(model(self._inputs, self._collections))

    @cached_property
    def _counting_repeats(self) -> Values:
        return _values(
            model((r for r in self._inputs if r.visible), self._collections, forgetful=True)
        )

    @cached_property
    def _by_first_hop(self) -> dict[tuple[str, int, int], Record]:
        return {
            chain_after(record, decode(record))[0][:3]: record for record in reversed(self._inputs)
        }

    @cached_property
    def _effects(self) -> dict[str, list[Effect]]:
        """Account -> what every record adds to it, aborted ones too."""
        effects: dict[str, list[Effect]] = {}
        for record in self._inputs:
            for account, amounts in self._collections(record, decode(record)).items():
                effects.setdefault(account, []).append((record, sum(amounts), len(amounts)))
        return effects

    def __call__(self, key: bytes, value: tuple[Any, ...], states: list[State]) -> Diagnosis:
        """Compare with the state of the same applied position; where there is none, look at that
        position.
        """
        candidates = [index for index, state in enumerate(states) if state.value[2] == value[2]]
        nearest = min(
            candidates, key=lambda index: abs(states[index].value[1] - value[1]), default=None
        )
        due = states[nearest] if nearest is not None else None
        effects = self._effects.get(key.decode(errors="replace"), [])
        if value in self._counting_aborted.get(key, ()):
            blame = next(record for record, _, _ in effects if not record.visible)
            why = f"it is right only if what was aborted counts, as {blame.at}"
            return Diagnosis("uncommitted-visible", why, blame, due)
        if nearest is not None:
            before = states[nearest - 1].value if nearest else (0, 0)
            return self._beside(value, before, states[nearest], effects)
        return self._nowhere(value, effects, repeated=value in self._counting_repeats.get(key, ()))

    def _nowhere(
        self, value: tuple[Any, ...], effects: list[Effect], *, repeated: bool
    ) -> Diagnosis:
        """No state has the row's applied position: what stands there?"""
        record = self._by_first_hop.get(value[2])
        if record is None:
            return Diagnosis("phantom", "no entry has its applied position")
        said = f"its applied position is {record.at}, "
        if all(record is not each for each, _, _ in effects):
            return Diagnosis("phantom", said + "which has no posting of this account", record)
        if not record.visible:
            return Diagnosis("uncommitted-visible", said + "which was aborted upstream", record)
        why = "a duplicate, applied again" if repeated else "a duplicate that changes nothing"
        return Diagnosis("duplicated", said + why, record)

    def _beside(
        self, value: tuple[Any, ...], before: tuple[Any, ...], due: State, effects: list[Effect]
    ) -> Diagnosis:
        """The row has the applied position of a state, and other sums: what is between them?"""
        amounts = self._collections(due.source, decode(due.source))[due.key.decode()]
        held = value[1] - before[1]
        if 0 < held < len(amounts) and value[0] - before[0] in map(
            sum, combinations(amounts, held)
        ):
            return Diagnosis(
                "torn",
                f"it holds {held} of the {len(amounts)} postings of {due.source.at}",
                due.source,
                due,
            )
        cents, postings = value[0] - due.value[0], value[1] - due.value[1]
        if postings == 0:
            return Diagnosis(
                "phantom",
                f"its postings are counted right, and {cents} cents are too many",
                due.source,
                due,
            )
        place = (due.source.partition, due.source.offset)
        sign = 1 if postings > 0 else -1
        blamed = [
            record
            for record, sum_cents, count in effects
            if (sum_cents, count) == (sign * cents, sign * postings)
            and (record.partition, record.offset) <= place
        ]
        aborted = next((record for record in blamed if not record.visible), None)
        if postings > 0 and aborted:
            return Diagnosis(
                "uncommitted-visible",
                f"it holds {aborted.at}, which was aborted upstream",
                aborted,
                due,
            )
        visible = next((record for record in blamed if record.visible), None)
        name, said = ("duplicated", "too many") if postings > 0 else ("lost", "too few")
        why = f"{abs(postings)} postings {said} at {due.source.at}" + (
            f", just those of {visible.at}" if visible else ""
        )
        return Diagnosis(name, why, visible or due.source, due)


def _values(states: States) -> Values:
    return {key: {state.value for state in each} for key, each in states.items()}


LEDGER = Program(
    name="ledger",
    contract=__doc__,
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
