"""ledger: postings of `entries` are summed per account into `balances`, each entry once by its first hop.

Two thoughts make it fast. The entries of a batch are first folded, in columns, into *runs*: the amounts of one account
under first hops of one place with rising offsets. Whatever part of a run is known already is then a prefix of it, found by
bisection, so folding ahead of the state is exact. And the state is kept in pages of many accounts, because Spark's
stateful operator costs a few round trips for every key of a batch: a key here is a page, not an account.
"""

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sf
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from streamgate.generators.envelope_pb2 import Envelope, Posting
from streamgate.impl.spark.envelopes import OUTPUT, decode
from streamgate.impl.stores import Store

READS, BESIDE, WRITES = ("entries",), (), "balances"
MADE_UP = Envelope(postings=[Posting(account="a", amount_cents=1)]).SerializeToString()
BATCH_RECORDS = 1_000_000
ARROW_RECORDS = 100_000  # the more entries fold together, the less is shuffled
PAGES = 1024  # fixed in a checkpoint when it is made
RUN = (  # where it was read first, the account and its amounts by first-hop offset, then what its last entry carries
    "read_partition int, read_offset bigint, account string, offsets binary, amounts binary, "
    "topic string, partition int, topic_id binary, id string, chain binary, timestamp_ms bigint"
)


def build(records: DataFrame, *_: Any) -> DataFrame:
    """Fold entries into runs, and runs into the pages of accounts."""
    return (
        runs_of(records)
        .withColumn("page", sf.expr(f"pmod(hash(account), {PAGES})"))
        .groupBy("page")
        .transformWithState(Accounts(), OUTPUT, "Append", "None")
    )


def runs_of(records: DataFrame) -> DataFrame:
    """Fold entries into runs; where a store keeps the state, all the rest is the driver's."""
    return records.drop("headers").mapInArrow(fold_into_runs, RUN)


def fold_into_runs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn batches of records into batches of runs."""
    for batch in batches:
        envelopes = decode(batch)
        postings = envelopes.postings.flatten()
        accounts = pc.struct_field(postings, "account")
        order = np.argsort(_codes(accounts), kind="stable")  # the order of entries within an account stays
        entry = pc.list_parent_indices(envelopes.postings).to_numpy()[order]
        hop = {name: column.take(pa.array(entry)) for name, column in envelopes.first_hop.items()}
        accounts, offsets = accounts.take(pa.array(order)), hop["offset"]
        parted = (np.diff(offsets.to_numpy()) <= 0) & (np.diff(entry) != 0)
        for column in (accounts, hop["topic"], hop["partition"], hop["topic_id"]):
            parted |= np.diff(_codes(column)) != 0
        starts = np.flatnonzero(np.concatenate([[True], parted]))[: len(entry)]
        ends = np.append(starts[1:], len(entry)) if len(entry) else starts
        first, last = pa.array(entry[starts]), pa.array(entry[ends - 1])
        yield pa.RecordBatch.from_pydict(
            {
                "read_partition": batch["partition"].take(first),
                "read_offset": batch["offset"].take(first),
                "account": accounts.take(pa.array(starts)),
                "offsets": _slices(offsets, starts),
                "amounts": _slices(pc.struct_field(postings, "amount_cents").take(pa.array(order)), starts),
                "topic": envelopes.first_hop["topic"].take(last),
                "partition": envelopes.first_hop["partition"].take(last),
                "topic_id": envelopes.first_hop["topic_id"].take(last),
                "id": envelopes.id.take(last),
                "chain": envelopes.chain.take(last),
                "timestamp_ms": batch["timestamp_ms"].take(last),
            }
        )


def _codes(column: pa.Array) -> np.ndarray:
    """Small numbers that are equal where the values are."""
    return np.asarray(column.dictionary_encode().indices)


def _slices(numbers: pa.Int64Array, starts: np.ndarray) -> pa.BinaryArray:
    """The numbers between one start and the next as bytes: Spark takes quadratic time over a column of lists."""
    bounds = (np.append(starts, len(numbers)) * 8).astype(np.int32)
    return pa.Array.from_buffers(
        pa.binary(), len(starts), [None, pa.py_buffer(bounds), pa.py_buffer(numbers.to_numpy())]
    )


class Accounts(StatefulProcessor):
    """The accounts of one page: {account: [balance_cents, postings, topic, partition, offset, topic_id]} as JSON."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state."""
        self.page = handle.getValueState("page", "accounts string")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803
        """Apply a batch's runs in the order they were read, and emit the last state of each account that changed."""
        stored = self.page.get()
        accounts = json.loads(stored[0]) if stored else {}
        changed: dict[str, tuple[Any, ...]] = {}
        for run in sorted(tuple(row)[:-1] for row in rows):  # a shuffle promises no order
            account, fresh = run[2], apply(accounts, run)
            if fresh:
                changed[account] = run
        if changed:
            self.page.update((json.dumps(accounts),))
        for account, run in changed.items():
            yield output(account, accounts[account], *run[-3:])


class Stored:
    """Accounts that a store keeps: all of them loaded at a start, and what a batch has changed written when it is out.

    Spark begins a batch late where the one before took long, and the next one on time: an interval is waited for here.
    """

    def __init__(self, store: Store, interval_ms: int) -> None:
        rows = ((account, json.loads(row)) for account, row in store.rows(WRITES).items())
        self.accounts = {a: [row["balance_cents"], row["postings"], *row["applied"].values()] for a, row in rows}
        self.store, self.changed = store, set[str]()
        self.interval_s, self.due_s = interval_ms / 1000, time.monotonic()
        self.hurry = threading.Event()  # set where the last write is not to wait

    def apply(self, runs: pa.Table) -> pa.Table:
        """Apply a batch's runs in the order they were read, and return the last row of each account that changed."""
        columns = [column.to_pylist() for column in runs.columns]
        changed = {run[2]: run for run in sorted(zip(*columns, strict=True)) if apply(self.accounts, run)}
        self.changed |= set(changed)
        rows = [output(account, self.accounts[account], *run[-3:]) for account, run in changed.items()]
        return pa.Table.from_pylist([row.asDict(recursive=True) for row in rows])

    def write(self) -> None:
        """Write what has changed, an interval after the last write at the earliest."""
        if not self.changed:
            return
        self.hurry.wait(max(0.0, self.due_s - time.monotonic()))
        rows = {}
        for account in self.changed:
            balance_cents, postings, *applied = self.accounts[account]
            hop = dict(zip(("topic", "partition", "offset", "topic_id"), applied, strict=True))
            row = {"account": account, "balance_cents": balance_cents, "postings": postings, "applied": hop}
            rows[account] = json.dumps(row)
        self.store.write(WRITES, rows)
        self.due_s = time.monotonic() + self.interval_s
        self.changed.clear()

    def close(self) -> None:
        """Let go of the store."""
        self.store.close()


def apply(accounts: dict[str, list[Any]], run: tuple[Any, ...]) -> bool:
    """Add what is new in a run to its account; whatever the account's applied position covers is a duplicate."""
    _, _, account, offsets, amounts, topic, partition, topic_id, *_ = run
    offsets, amounts = np.frombuffer(offsets, np.int64), np.frombuffer(amounts, np.int64)
    balance_cents, postings, *applied = accounts.get(account, [0, 0, None, None, -1, None])
    is_same_place = [topic, partition, topic_id.hex()] == [applied[0], applied[1], applied[3]]
    new = amounts[np.searchsorted(offsets, applied[2], "right") :] if is_same_place else amounts
    if not len(new):
        return False
    total = balance_cents + sum(new.tolist())  # in Python's integers, which never overflow
    accounts[account] = [total, postings + len(new), topic, partition, int(offsets[-1]), topic_id.hex()]
    return True


def output(account: str, state: list[Any], envelope_id: str, chain: bytes, timestamp_ms: int) -> Row:
    """The row of an account, with the lineage of the last entry applied."""
    balance_cents, postings, topic, partition, offset, _ = state
    value = {
        "account": account,
        "balance_cents": balance_cents,
        "postings": postings,
        "applied": {"topic": topic, "partition": partition, "offset": offset},
    }
    headers = [Row(key="id", value=envelope_id.encode()), Row(key="chain", value=bytes(chain))]
    return Row(key=account.encode(), value=json.dumps(value).encode(), headers=headers, timestamp_ms=timestamp_ms)
