"""batcher: events of `visits` wait per customer until they fill a batch.

The clock sends the rest to `batches` too. The clock is input: ticks of a source of its own, which
Spark logs with each batch like the records. So a batch that runs again flushes what it flushed
before, and a jump of the wall clock moves nothing.

A tick goes to every page of customers and sends all that waits there; so does the one that closes.
Each page says whether something waits, because else there is no need for a tick.
"""

import json
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sf
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from upheld.impl.spark.joins import Table
from upheld.impl.spark.rows import OUTPUT

READS: tuple[str, ...] = ("visits",)
BESIDE: tuple[str, ...] = ()
WRITES = "batches"
MADE_UP = b'{"customerId": "a", "visitorId": "a", "action": "a"}'
BATCH_RECORDS = 1_000_000
ARROW_RECORDS = 100_000
PAGES = 16  # fixed in a checkpoint when it is made
TICK = -1  # the partition of a tick: it sorts before all that comes with it
Waiting = dict[str, list[list[str]]]
VISITS = Table("visits", customerId="text", visitorId="text", action="text")
BAD = "concat_ws('', 'poison: ', topic, '-', partition, '@', offset, ' holds no visit')"


def build(records: DataFrame, ticks: DataFrame | None, start: dict[str, Any]) -> DataFrame:
    """Bring events and ticks to the pages.

    A null is no event, and a record that holds no visit is poison.
    """
    assert ticks is not None
    is_visit = f"coalesce({VISITS.is_row}, false)"
    visits = (
        records.where("value is not null")
        .withColumns({"name": sf.expr("cast(key as string)"), "visits": sf.expr(VISITS.read)})
        .withColumn("customer", sf.expr(f"if({is_visit}, name, raise_error({BAD}))"))
        .selectExpr(
            f"pmod(hash(customer), {PAGES}) as page",
            "partition",
            "offset",
            "customer",
            "visits.row.visitorId as visitor",
            "visits.row.action as action",
        )
    )
    clock = ticks.selectExpr(
        f"explode(sequence(0, {PAGES - 1})) as page",
        f"{TICK} as partition",
        "0L as offset",
        "'' as customer",
        "'' as visitor",
        "'' as action",
    )
    return (
        visits.union(clock)
        .groupBy("page")
        .transformWithState(Customers(start["parameters"]), OUTPUT, "Append", "None")
    )


class Customers(StatefulProcessor):
    """The customers of one page: {customer: [[visitor, action], …]}."""

    def __init__(self, parameters: dict[str, Any]) -> None:
        self.threshold = parameters["threshold"]

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state."""
        self.page = handle.getValueState("page", "customers string")

    def handleInputRows(
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,
    ) -> Iterator[Row]:
        """Fill batches in the order of the log, and send the rest if there was a tick.

        The last row has no key. It says whether something waits.
        """
        stored = self.page.get()
        waiting: Waiting = json.loads(stored[0]) if stored else {}
        arrived = sorted(tuple(row)[1:] for row in rows)  # a shuffle promises no order
        yield from fill(waiting, [row[2:] for row in arrived if row[0] != TICK], self.threshold)
        if is_due := arrived[0][0] == TICK:
            yield from (output(customer, batch) for customer, batch in waiting.items())
            waiting = {}
        self.page.update((json.dumps(waiting),))
        how = b"sent" if is_due else b"waits" if waiting else b"idle"
        yield Row(key=None, value=b"%d %s" % (key[0], how), headers=None, timestamp_ms=0)


def fill(waiting: Waiting, events: list[tuple[str, str, str]], threshold: int) -> Iterator[Row]:
    """Put events into their customers' batches, and yield the batches that are full.

    After a full batch the next one begins empty.
    """
    for customer, *event in events:
        batch = waiting.setdefault(customer, [])
        batch.append(event)
        if len(batch) >= threshold:
            yield output(customer, waiting.pop(customer))


def output(customer: str, batch: list[list[str]]) -> Row:
    """Return the row of a customer's batch."""
    events = [{"visitorId": visitor, "action": action} for visitor, action in batch]
    value = json.dumps({"customerId": customer, "events": events})
    return Row(key=customer.encode(), value=value.encode(), headers=[], timestamp_ms=0)
