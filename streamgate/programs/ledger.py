"""ledger: `entries` (key = branch, value = Envelope) -> `balances` (key = account, value = JSON).

A row is ``{"account", "balance_cents", "postings", "applied": {"topic", "partition", "offset"}}``, integers only. An account belongs to one
branch, so all its entries lie in one partition. An entry fans out into postings of several accounts, and one account may
occur twice: they are one collection under one offset. ``applied`` is the entry's first hop (its own position if the
chain is empty): the same topic, partition and topic id with an offset not above it is a duplicate and is discarded; any
other first hop replaces it. The row's headers are the ``id`` and the ``chain`` (an Envelope that holds the chain alone,
the ledger's own read position last) of the last entry applied, and its timestamp is that entry's.
Parameters: commit_interval_ms.
"""

import json
from collections.abc import Iterable
from typing import Any

from google.protobuf.message import DecodeError

from streamgate.generators.envelope_pb2 import Envelope
from streamgate.history.events import Record
from streamgate.programs.contract import Program, State, States, Unreadable
from streamgate.programs.relay import Chain, chain_after, chain_of, decode

FIELDS = {"account", "balance_cents", "postings", "applied"}
Row = tuple[int, int, tuple[str, int, int]]  # balance in cents, postings, applied


def collections(envelope: Envelope) -> dict[str, list[int]]:
    """The entry's postings by account, in order."""
    sums: dict[str, list[int]] = {}
    for posting in envelope.postings:
        sums.setdefault(posting.account, []).append(posting.amount_cents)
    return sums


def model(inputs: Iterable[Record], *, forgetful: bool = False) -> States:
    """Fold entries into the states of every account; ``forgetful`` discards no duplicate (to explain a wrong sum)."""
    states: States = {}
    applied: dict[str, tuple[str, int, int, bytes]] = {}
    for record in inputs:
        envelope = decode(record)
        chain = chain_after(record, envelope)
        first = chain[0]
        for account, amounts in collections(envelope).items():
            seen = applied.get(account)
            if seen and (seen[0], seen[1], seen[3]) == (first[0], first[1], first[3]) and first[2] <= seen[2] and not forgetful:
                continue
            applied[account] = first
            history = states.setdefault(account.encode(), [])
            balance, postings = history[-1].value[:2] if history else (0, 0)
            value = (balance + sum(amounts), postings + len(amounts), first[:3])
            history.append(State(account.encode(), value, record, chain, envelope.id))
    return states


def value_of(record: Record) -> tuple[Any, ...]:
    """What a row says: balance in cents, postings, applied; Unreadable where it breaks the contract."""
    try:
        row = json.loads(record.value or b"null")
        applied = row["applied"]
        numbers = (row["balance_cents"], row["postings"], applied["partition"], applied["offset"])
    except (ValueError, KeyError, TypeError) as error:
        raise Unreadable(f"{record.at} is no row of the contract: {error!r}") from None
    if not all(type(number) is int for number in numbers):
        raise Unreadable(f"{record.at} holds a number that is no integer")
    if set(row) != FIELDS or set(applied) != {"topic", "partition", "offset"}:
        raise Unreadable(f"{record.at} has other fields than {sorted(FIELDS)}")
    if row["account"].encode() != record.key:
        raise Unreadable(f"{record.at} has another account in its key than in its value")
    return row["balance_cents"], row["postings"], (applied["topic"], applied["partition"], applied["offset"])


def lineage_of(record: Record) -> tuple[str | None, Chain]:
    """The id and the chain in a row's headers."""
    headers = dict(record.headers)
    try:
        chain = chain_of(Envelope.FromString(headers.get("chain") or b""))
    except DecodeError as error:
        raise Unreadable(f"{record.at} has a header `chain` that is no Envelope: {error}") from None
    return (headers.get("id") or b"").decode(errors="replace") or None, chain


def explain(inputs: list[Record], key: bytes, value: tuple[Any, ...], states: list[State]) -> tuple[str, str]:
    """Name the anomaly of a row that is no state, by the mistake that would give just this row."""
    if value in {s.value for s in model(inputs).get(key, [])}:
        return "uncommitted-visible", "it is right only if entries that were aborted upstream are counted"
    before = None
    for state in states:
        if state.value[2] == value[2]:
            amounts = collections(decode(state.source)).get(key.decode(), [])
            start = before.value[:2] if before else (0, 0)
            for count in range(1, len(amounts)):
                if value[:2] == (start[0] + sum(amounts[:count]), start[1] + count):
                    return "torn", f"it holds {count} of the {len(amounts)} postings of {state.source.at}"
            if value[1] > state.value[1]:
                return "duplicated", f"{value[1] - state.value[1]} postings too many at {state.source.at}"
            return "lost", f"{state.value[1] - value[1]} postings too few at {state.source.at}"
        before = state
    if value in {s.value for s in model((r for r in inputs if r.visible), forgetful=True).get(key, [])}:
        return "duplicated", "it is right only if a duplicate is applied again"
    for record in inputs:
        if chain_after(record, decode(record))[0][:3] == value[2]:
            known = {a for a in collections(decode(record))}
            if key.decode() not in known:
                return "phantom", f"its applied position is {record.at}, which has no posting of this account"
            if not record.visible:
                return "uncommitted-visible", f"its applied position is {record.at}, which was aborted upstream"
            return "duplicated", f"its applied position is {record.at}, a duplicate that changes nothing"
    return "phantom", "no entry has its applied position"


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
    explain=explain,
)
