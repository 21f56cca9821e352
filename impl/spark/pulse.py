"""pulse: all signals, summed once per robot into `frequency`.

Those of `motors`, `grippers` and `controllers` are one stream. One operator takes signals and names
alike, so a row is whole when it leaves. There is neither a join nor a table of its own: queries are
answered from the result topic.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from upheld.impl.spark.joins import Said, Step, Table, in_pages
from upheld.impl.spark.rows import NO_HEADERS

READS: tuple[str, ...] = ("motors", "grippers", "controllers", "robots")
BESIDE: tuple[str, ...] = ()
WRITES = "frequency"
MADE_UP = b'{"robot": "a", "ts_ms": 1, "points": 1, "name": "a"}'
BATCH_RECORDS = 250_000
ARROW_RECORDS = 100_000
PAGES = 16  # fixed in a checkpoint when it is made
SIGNALS = Table("signals", robot="text", ts_ms="integer", points="integer")
NAMES = Table("names", name="text", is_keyed=False)
BAD = "concat_ws('', 'poison: ', topic, '-', partition, '@', offset, ' is no record of its topic')"


def build(records: DataFrame, _: object, start: dict[str, Any]) -> DataFrame:
    """Read all four topics, and bring a robot's records to its page.

    Returns the rows that change.
    """
    roles = ", ".join(f"'{start['topics'][role]}', '{role}'" for role in READS)
    is_name = f"topic = '{start['topics']['robots']}'"
    is_legal = (
        f"name is not null and coalesce(if({is_name}, value is null or {NAMES.is_row}, "
        f"{SIGNALS.is_row}), false)"
    )
    read = (
        records.withColumn("name", sf.expr("cast(key as string)"))
        .withColumns({table.role: sf.expr(table.read) for table in (SIGNALS, NAMES)})
        .selectExpr(
            f"if({is_legal}, name, raise_error({BAD})) as robot",
            f"element_at(map({roles}), topic) as role",
            "partition",
            "offset",
            "signals.row.ts_ms as ts_ms",
            "signals.row.points as points",
            "names.row.name as called",
        )
    )
    takes = ("role", "offset", "partition", "robot", "ts_ms", "points", "called")
    step = Step(takes, merge, ("robot", "value"))
    return in_pages(read, "robot", step, PAGES).selectExpr(
        "cast(robot as binary) as key",
        "cast(value as binary) as value",
        f"{NO_HEADERS} as headers",
        "0L as timestamp_ms",
    )


def merge(page: dict[str, Any], said: Iterable[Said]) -> Iterator[Said]:
    """Count a batch into the page {robot: its row}.

    Yields each row that changes, if its robot has had a signal.
    """
    touched = {}
    # A shuffle promises no order.
    for role, offset, partition, robot, ts_ms, points, called in sorted(said):
        row = page.setdefault(robot, {"robot": robot, "name": None, "applied": {}})
        touched[robot] = row
        row["applied"][role] = {"partition": partition, "offset": offset}
        if role == "robots":
            row["name"] = called
        else:
            count_in(row, ts_ms, points)
    for robot, row in touched.items():
        if "points" in row:
            yield robot, json.dumps(row)


def count_in(row: dict[str, Any], ts_ms: int, points: int) -> None:
    """Add a signal to a row.

    The signal may be older than the robot's first one so far, or of the same moment.
    """
    row["points"] = row.get("points", 0) + points
    first = {"first_ts_ms": ts_ms, "first_points": points}
    if (age_ms := ts_ms - row.get("first_ts_ms", ts_ms + 1)) < 0:
        row |= first
    elif age_ms == 0:
        row["first_points"] += points
    row["last_ts_ms"] = max(ts_ms, row.get("last_ts_ms", ts_ms))
    lasted_ms = row["last_ts_ms"] - row["first_ts_ms"]
    row["rate_mhz"] = (
        (row["points"] - row["first_points"]) * 1_000_000 // lasted_ms if lasted_ms else 0
    )
