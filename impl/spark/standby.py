"""The outputs of a cluster that stands by for another one.

It is to go on where the other cluster ends.
"""

from typing import Any

import pyarrow as pa

from upheld.adapter import Failed
from upheld.generators.envelope_pb2 import Envelope
from upheld.impl.spark.checkpoint import Positions


class Standby:
    """Holds rows back while the cluster stands by.

    Later it leaves out what the other cluster has sent. Rows are told apart by where their last
    entry was read.
    """

    schema: pa.Schema

    def __init__(self, *, stands_by: bool) -> None:
        # The last row of each key that is held back.
        self.held: dict[bytes, dict[str, Any]] | None = {} if stands_by else None
        # Where the other cluster has ended: it has sent all that was read below.
        self.after: Positions = {}

    def sift(self, table: pa.Table, ends: Positions) -> pa.Table:
        """Return the rows of a batch that are to be sent; `ends` is where the batch ends."""
        if self.held is not None:
            self.held |= {row["key"]: row for row in table.to_pylist()}
            self.schema = table.schema
            return table.slice(0, 0)
        if not self.after:
            return table
        table = self._due(table)
        if all(ends.get(place, 0) >= offset for place, offset in self.after.items()):
            self.after = {}  # all that follows was read by this cluster alone
        return table

    def let_go(self, after: Positions, held_from: Positions) -> pa.Table:
        """Hold nothing back any more, and return the rows that are due.

        Args:
            after: Where the other cluster has ended.
            held_from: Where this cluster began to hold back.

        Raises:
            Failed: The other cluster ended before this one began to hold back.
        """
        assert self.held is not None
        rows = list(self.held.values())
        self.held = None
        self.after = after
        if any(offset < held_from.get(place, 0) for place, offset in after.items()):
            raise Failed(
                "conflict",
                "this cluster was started again, and what it held back before is gone",
            )
        return self._due(pa.Table.from_pylist(rows, self.schema)) if rows else None

    def _due(self, table: pa.Table) -> pa.Table:
        """Return the rows whose last entry was read where the other cluster has not read."""
        are_due = [is_at_or_above(self.after, headers) for headers in table["headers"].to_pylist()]
        return table.filter(pa.array(are_due, pa.bool_()))


def is_at_or_above(places: Positions, headers: list[dict[str, Any]]) -> bool:
    """Whether the last entry of a row was read at or above these positions.

    The last hop of the row's chain says where that was.
    """
    (chain,) = (header["value"] for header in headers if header["key"] == "chain")
    hop = Envelope.FromString(chain).chain[-1]
    return bool(hop.offset >= places.get((hop.topic, hop.partition), 0))
