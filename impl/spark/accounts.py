"""The states of `ledger`: what runs make of accounts.

Spark's driver starts a Python of its own whenever a query begins, only to ask a processor for the
names of its states. So processors stand where little is imported: with Arrow, NumPy and Protobuf
that Python took 0.4 s longer to come up.
"""

import json
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

Run = tuple[Any, ...]  # a row of Spark, in the columns of `ledger.RUN`
State = list[Any]  # of an account, as JSON has it


class Accounts(StatefulProcessor):
    """The accounts of one page, as JSON.

    An account is [balance_cents, postings, topic, partition, offset, topic_id] under its name.
    """

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state."""
        self.page = handle.getValueState("page", "accounts string")

    def handleInputRows(
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,
    ) -> Iterator[Row]:
        """Apply a batch's runs in the order they were read.

        Yields:
            The last state of each account that changed.
        """
        stored = self.page.get()
        accounts = json.loads(stored[0]) if stored else {}
        changed: dict[str, Run] = {}
        for run in sorted(tuple(row)[:-1] for row in rows):  # a shuffle promises no order
            account = run[2]
            fresh = apply(accounts, run)
            if fresh:
                changed[account] = run
        if changed:
            self.page.update((json.dumps(accounts),))
        for account, run in changed.items():
            yield output(account, accounts[account], run[-3:])


def apply(accounts: dict[str, State], run: Run) -> bool:
    """Add the new part of a run to its account; return whether there is any.

    Postings that the account's applied position covers are duplicates.
    """
    _, _, account, offsets, amounts, topic, partition, topic_id, *_ = run
    offsets = array("q", offsets)
    amounts = array("q", amounts)
    balance_cents, postings, *applied = accounts.get(account, [0, 0, None, None, -1, None])
    is_same_place = [topic, partition, topic_id.hex()] == [applied[0], applied[1], applied[3]]
    new = amounts[bisect_right(offsets, applied[2]) :] if is_same_place else amounts
    if not len(new):
        return False
    total = balance_cents + sum(new)  # in Python's integers, which never overflow
    accounts[account] = [total, postings + len(new), topic, partition, offsets[-1], topic_id.hex()]
    return True


def output(account: str, state: State, last: tuple[str, bytes, int], of: str = "account") -> Row:
    """Return the row of an account.

    It has the id, chain and timestamp of the last entry applied.
    """
    envelope_id, chain, timestamp_ms = last
    balance_cents, postings, topic, partition, offset, _ = state
    value = {
        of: account,
        "balance_cents": balance_cents,
        "postings": postings,
        "applied": {"topic": topic, "partition": partition, "offset": offset},
    }
    headers = [Row(key="id", value=envelope_id.encode()), Row(key="chain", value=bytes(chain))]
    return Row(
        key=account.encode(),
        value=json.dumps(value).encode(),
        headers=headers,
        timestamp_ms=timestamp_ms,
    )
