"""batcher: events of `visits` wait per customer in `batches` until they fill one, or the clock sends them.

The clock is input: ticks of a source of its own, which Spark logs with each batch like the records. So a batch that runs again
flushes what it flushed before, and a clock that somebody sets moves nothing. A tick goes to every page of customers; so does
the one that closes. Each page says what still waits, because nobody has to tick while nothing does.
"""

import json
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sf
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from streamgate.impl.spark.clock import LEAD_MS, NEVER
from streamgate.impl.spark.envelopes import OUTPUT
from streamgate.impl.spark.joins import Table

READS, BESIDE, WRITES = ("visits",), (), "batches"
MADE_UP = b'{"customerId": "a", "visitorId": "a", "action": "a"}'
BATCH_RECORDS = 1_000_000
ARROW_RECORDS = 100_000
PAGES = 16  # fixed in a checkpoint when it is made
VISITS = Table("visits", customerId="text", visitorId="text", action="text")
BAD = "concat_ws('', 'poison: ', topic, '-', partition, '@', offset, ' holds no visit')"


def build(records: DataFrame, ticks: DataFrame, start: dict[str, Any]) -> DataFrame:
    """Bring events and ticks to the pages; a null is no event, and what is no visit is poison."""
    visits = (
        records.where("value is not null")
        .withColumns({"name": sf.expr("cast(key as string)"), "visits": sf.expr(VISITS.read)})
        .withColumn("customer", sf.expr(f"if(coalesce({VISITS.is_row}, false), name, raise_error({BAD}))"))
        .selectExpr(
            f"pmod(hash(customer), {PAGES}) as page", "0L as elapsed_ms", "false as closing",
            "partition", "offset", "customer", "visits.row.visitorId as visitor", "visits.row.action as action",
        )
    )  # fmt: skip
    clock = ticks.selectExpr(
        f"explode(sequence(0, {PAGES - 1})) as page", "elapsed_ms", "closing", "0 as partition", "0L as offset",
        "'' as customer", "'' as visitor", "'' as action",
    )  # fmt: skip
    return (
        visits.union(clock).groupBy("page").transformWithState(Customers(start["parameters"]), OUTPUT, "Append", "None")
    )


class Customers(StatefulProcessor):
    """The customers of one page: {"now_ms": by the ticks, "customers": {customer: [since_ms, [[visitor, action], …]]}}."""

    def __init__(self, parameters: dict[str, Any]) -> None:
        self.threshold, self.wait_ms = parameters["threshold"], max(parameters["interval_ms"] - LEAD_MS, 0)

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state."""
        self.page = handle.getValueState("page", "customers string")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803
        """Fill batches in the order of the log, then let the clock go on, and say in how many ms the next one is due, if any."""
        stored = self.page.get()
        state: dict[str, Any] = json.loads(stored[0]) if stored else {"now_ms": 0, "customers": {}}
        arrived = sorted(tuple(row)[1:] for row in rows)  # a shuffle promises no order
        yield from fill(state, [row[4:] for row in arrived if row[4]], self.threshold)
        state["now_ms"] += sum(row[0] for row in arrived)
        due_ms = state["now_ms"] if any(row[1] for row in arrived) else state["now_ms"] - self.wait_ms
        yield from overdue(state, due_ms)
        self.page.update((json.dumps(state),))
        since_ms = min((since for since, _ in state["customers"].values()), default=None)
        due_in_ms = NEVER if since_ms is None else since_ms + self.wait_ms - state["now_ms"]
        yield Row(key=None, value=b"%d %d" % (key[0], due_in_ms), headers=None, timestamp_ms=0)


def fill(state: dict[str, Any], events: list[tuple[str, str, str]], threshold: int) -> Iterator[Row]:
    """Put events into their customers' batches; a full one goes, and the next begins empty."""
    customers = state["customers"]
    for customer, *event in events:
        batch = customers.setdefault(customer, [state["now_ms"], []])[1]
        batch.append(event)
        if len(batch) >= threshold:
            yield output(customer, customers.pop(customer)[1])


def overdue(state: dict[str, Any], due_ms: int) -> Iterator[Row]:
    """Send what has waited since then or longer."""
    customers = state["customers"]
    for customer in [customer for customer, (since_ms, _) in customers.items() if since_ms <= due_ms]:
        yield output(customer, customers.pop(customer)[1])


def output(customer: str, batch: list[tuple[str, str]]) -> Row:
    """A customer's batch."""
    events = [{"visitorId": visitor, "action": action} for visitor, action in batch]
    value = json.dumps({"customerId": customer, "events": events})
    return Row(key=customer.encode(), value=value.encode(), headers=[], timestamp_ms=0)
