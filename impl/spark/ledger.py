"""ledger: sums per account of the postings of `entries`, into `balances`.

Each entry counts once, by its first hop. Two ideas make it fast.

The entries of a batch are first folded, in columns, into *runs*. A run has the amounts of one
account, under first hops of one place with rising offsets. The part of a run that is known already
is then a prefix of it, found by bisection. So folding ahead of the state is exact.

And the state is kept in pages of many accounts: a key of Spark's stateful operator is a page, not
an account. The operator costs a few round trips for every key of a batch.
"""

import json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from upheld.generators.envelope_pb2 import Envelope, Posting
from upheld.impl.common.stores import Store
from upheld.impl.spark.accounts import Accounts, apply, output
from upheld.impl.spark.envelopes import decode
from upheld.impl.spark.rows import OUTPUT

READS: tuple[str, ...] = ("entries",)
BESIDE: tuple[str, ...] = ()
WRITES = "balances"
MADE_UP = Envelope(postings=[Posting(account="a", amount_cents=1)]).SerializeToString()
BATCH_RECORDS = 1_000_000
ARROW_RECORDS = 100_000  # the more entries fold together, the less is shuffled
PAGES = 1024  # fixed in a checkpoint when it is made
# Where it was read first, the account and its amounts by first-hop offset, then what its last entry
# carries.
RUN = (
    "read_partition int, read_offset bigint, account string, offsets binary, amounts binary, "
    "topic string, partition int, topic_id binary, id string, chain binary, timestamp_ms bigint"
)


def build(records: DataFrame, *_: object) -> DataFrame:
    """Fold entries into runs, and runs into the pages of accounts."""
    return (
        runs_of(records)
        .withColumn("page", sf.expr(f"pmod(hash(account), {PAGES})"))
        .groupBy("page")
        .transformWithState(Accounts(), OUTPUT, "Append", "None")
    )


def runs_of(records: DataFrame) -> DataFrame:
    """Fold entries into runs.

    If a store keeps the state, the driver does all the rest.
    """
    return records.drop("headers").mapInArrow(fold_into_runs, RUN)


def fold_into_runs(
    batches: Iterator[pa.RecordBatch], *, by_key: bool = False
) -> Iterator[pa.RecordBatch]:
    """Turn batches of records into batches of runs.

    If `by_key`, all postings of an entry are those of its branch.
    """
    for batch in batches:
        envelopes = decode(batch)
        postings = envelopes.postings.flatten()
        entry = pc.list_parent_indices(envelopes.postings)
        accounts = (
            batch["key"].take(entry).cast(pa.string())
            if by_key
            else pc.struct_field(postings, "account")
        )
        # The order of entries within an account stays.
        order = np.argsort(_codes(accounts), kind="stable")
        entry = entry.to_numpy()[order]
        hop = {name: column.take(pa.array(entry)) for name, column in envelopes.first_hop.items()}
        accounts = accounts.take(pa.array(order))
        offsets = hop["offset"]
        parted = (np.diff(offsets.to_numpy()) <= 0) & (np.diff(entry) != 0)
        for column in (accounts, hop["topic"], hop["partition"], hop["topic_id"]):
            parted |= np.diff(_codes(column)) != 0
        starts = np.flatnonzero(np.concatenate([[True], parted]))[: len(entry)]
        ends = np.append(starts[1:], len(entry)) if len(entry) else starts
        first = pa.array(entry[starts])
        last = pa.array(entry[ends - 1])
        yield pa.RecordBatch.from_pydict(
            {
                "read_partition": batch["partition"].take(first),
                "read_offset": batch["offset"].take(first),
                "account": accounts.take(pa.array(starts)),
                "offsets": _slices(offsets, starts),
                "amounts": _slices(
                    pc.struct_field(postings, "amount_cents").take(pa.array(order)), starts
                ),
                "topic": envelopes.first_hop["topic"].take(last),
                "partition": envelopes.first_hop["partition"].take(last),
                "topic_id": envelopes.first_hop["topic_id"].take(last),
                "id": envelopes.id.take(last),
                "chain": envelopes.chain.take(last),
                "timestamp_ms": batch["timestamp_ms"].take(last),
            }
        )


def _codes(column: pa.Array) -> np.ndarray:
    """Return small numbers that are equal where the values are."""
    return np.asarray(column.dictionary_encode().indices)


def _slices(numbers: pa.Int64Array, starts: np.ndarray) -> pa.BinaryArray:
    """Return the numbers between one start and the next as bytes.

    Spark takes quadratic time over a column of lists.
    """
    bounds = (np.append(starts, len(numbers)) * 8).astype(np.int32)
    return pa.Array.from_buffers(
        pa.binary(), len(starts), [None, pa.py_buffer(bounds), pa.py_buffer(numbers.to_numpy())]
    )


class Stored:
    """States that a store keeps.

    All of them are loaded at a start. The states that a batch has changed are written when it is
    out.
    """

    def __init__(self, store: Store, stage: str = WRITES, of: str = "account") -> None:
        rows = ((account, json.loads(row)) for account, row in store.rows(stage).items())
        self.accounts = {
            a: [row["balance_cents"], row["postings"], *row["applied"].values()] for a, row in rows
        }
        self.store = store
        self.stage = stage
        self.of = of
        self.changed = set[str]()

    def apply(self, runs: pa.Table) -> pa.Table:
        """Apply a batch's runs in the order they were read.

        Returns the last row of each account that changed.
        """
        columns = [column.to_pylist() for column in runs.columns]
        changed = {
            run[2]: run for run in sorted(zip(*columns, strict=True)) if apply(self.accounts, run)
        }
        self.changed |= set(changed)
        rows = [
            output(account, self.accounts[account], run[-3:], self.of)
            for account, run in changed.items()
        ]
        return pa.Table.from_pylist([row.asDict(recursive=True) for row in rows])

    def write(self) -> None:
        """Write the states that have changed."""
        rows = {}
        for account in self.changed:
            balance_cents, postings, *applied = self.accounts[account]
            hop = dict(zip(("topic", "partition", "offset", "topic_id"), applied, strict=True))
            row = {
                self.of: account,
                "balance_cents": balance_cents,
                "postings": postings,
                "applied": hop,
            }
            rows[account] = json.dumps(row)
        self.store.write(self.stage, rows)
        self.changed.clear()
