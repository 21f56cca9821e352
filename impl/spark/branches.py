"""branches: a ledger's `balances`, and its sums per branch in `totals`.

A store keeps both stages. They are folds of the same entries, each entry once by its first hop, so
neither waits for the other. If a crash leaves an entry stored by one stage alone, a replay gives it
to the other one. Downstream is stored first all the same.
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from upheld.impl.common.stores import Store
from upheld.impl.spark import ledger

READS: tuple[str, ...] = ("entries",)
BESIDE: tuple[str, ...] = ()
WRITES = "totals"
MADE_UP = ledger.MADE_UP
BATCH_RECORDS = ledger.BATCH_RECORDS
ARROW_RECORDS = ledger.ARROW_RECORDS


def build(records: DataFrame, *_: object) -> DataFrame:
    """Fold entries into runs of both stages; all the rest is the driver's."""
    return records.drop("headers").mapInArrow(fold_into_runs, f"{ledger.RUN}, stage string")


runs_of = build


def fold_into_runs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn batches of records into batches of runs, of accounts and of branches."""
    for batch in batches:
        for stage in (ledger.WRITES, WRITES):
            for runs in ledger.fold_into_runs(iter([batch]), by_key=stage == WRITES):
                yield runs.append_column("stage", pa.array([stage] * len(runs)))


class Stored:
    """The states of both stages, the last one first."""

    def __init__(self, store: Store) -> None:
        self.stages = ledger.Stored(store, WRITES, "branch"), ledger.Stored(store)

    def apply(self, runs: pa.Table) -> pa.Table:
        """Apply a batch's runs, each to its stage.

        Returns the last row of each key that changed, with its stage.
        """
        changed = []
        for each in self.stages:
            rows = each.apply(
                runs.filter(pc.equal(runs["stage"], each.stage)).drop_columns("stage")
            )
            # The only one if there are none.
            changed.append(rows.add_column(0, "role", pa.array([each.stage] * len(rows))))
        return pa.concat_tables(changed, promote_options="default")

    def write(self) -> None:
        """Write what has changed."""
        for each in self.stages:
            each.write()
