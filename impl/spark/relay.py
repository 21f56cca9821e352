"""relay: every record of `input` goes on to `output` with one more hop.

The hop is the position that the record was read from. The program is stateless and native: the hop
is appended to the envelope's bytes, so not even unknown fields are lost.
"""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from upheld.generators.envelope_pb2 import Envelope
from upheld.impl.spark.envelopes import decode, join
from upheld.impl.spark.rows import OUTPUT

READS: tuple[str, ...] = ("input",)
BESIDE: tuple[str, ...] = ()
WRITES = "output"
MADE_UP = Envelope(id="a").SerializeToString()
BATCH_RECORDS = 1_000_000
ARROW_RECORDS = 2_000  # Spark takes quadratic time over a column of lists, which headers are


def build(records: DataFrame, *_: object) -> DataFrame:
    """Append the hop.

    Key, headers, timestamp and the order within a partition stay.
    """
    return records.mapInArrow(append_hop, OUTPUT)


def append_hop(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn batches of records into batches of output."""
    for batch in batches:
        values = join(batch["value"], decode(batch).own_hop)
        yield pa.RecordBatch.from_arrays(
            [batch["key"], values, batch["headers"], batch["timestamp_ms"]], list(OUTPUT.names)
        )
