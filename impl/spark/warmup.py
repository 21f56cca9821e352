"""The warm-up: all that a first batch would wait for is done before it comes.

Class loading, compilation and Python workers take seconds. So a program runs once on made-up
records, for no reader.
"""

import tempfile
import threading
from typing import Any, Final, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from upheld.impl.spark.clock import Clock
from upheld.impl.spark.program import PROGRAMS, Program
from upheld.impl.spark.rows import NO_HEADERS

WARM_UP_RECORDS: Final = 100
WARM_UP_BATCHES: Final = 1
LOOK_S: Final = 0.05  # how often a finished batch is looked for


def bring_up_workers(session: SparkSession) -> None:
    """Run a job without a state on a thread.

    The Python workers come up on one core while the JVM plans the query on the other.
    """
    job = session.range(2).mapInArrow(lambda batches: batches, "id long")
    threading.Thread(target=job.toArrow, daemon=True).start()


def warm_up(
    session: SparkSession,
    program: Program,
    topics: dict[str, str] | None = None,
    real: DataFrame | None = None,
) -> None:
    """Run a program on made-up records, and on real ones if they are given.

    Its results go nowhere.
    """
    topics = topics or {role: role for role in (*program.READS, *program.BESIDE)}
    start: dict[str, Any] = {"topics": topics, "parameters": {"threshold": 1, "interval_ms": 1}}
    numbers = (
        session.readStream.format("rate-micro-batch").option("rowsPerBatch", WARM_UP_RECORDS).load()
    )
    records = _made_up(program, numbers, [topics[role] for role in program.READS])
    if real:
        records = records.unionByName(real)
    with tempfile.TemporaryDirectory(prefix="upheld-warm-up-") as folder:
        beside = None
        if program is PROGRAMS["batcher"]:
            beside = Clock(f"file://{folder}/ticks", 1, 1).ticks(session)
        elif program.BESIDE:
            number = session.range(1).toDF("value")
            beside = _made_up(program, number, [topics[role] for role in program.BESIDE])
        query = (
            program.build(records, beside, start)
            .writeStream.foreachBatch(lambda rows, _: rows.toArrow())
            .option("checkpointLocation", f"{folder}/checkpoint")
            .start()
        )
        while not ((done := query.lastProgress) and done["batchId"] >= WARM_UP_BATCHES):
            look_at(query)
        query.stop()


def look_at(query: StreamingQuery) -> None:
    """Wait `LOOK_S` seconds for the end of a query; raise what it died of."""
    query.awaitTermination(cast(int, LOOK_S))  # its stub forgets fractions of a second


def _made_up(program: Program, numbers: DataFrame, topics: list[str]) -> DataFrame:
    """Return made-up records of these topics, one for each number."""
    names = ", ".join(map(repr, topics))
    return numbers.selectExpr(
        "cast('a' as binary) as key",
        f"unhex('{program.MADE_UP.hex()}') as value",
        f"elt(cast(1 + value % {len(topics)} as int), {names}) as topic",
        "0 as partition",
        "value as offset",
        "0L as timestamp_ms",
        f"{NO_HEADERS} as headers",
        "cast('' as binary) as topic_id",
    )
