"""Dead letters: records that cannot be read leave the stream before the program.

They come out beside the program's results. Both are branches of one query and go out in one batch,
so one transaction has them. The records are read twice for that, and decoded twice more. Without a
topic for dead letters, none of this is in the query.
"""

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import StringType

from upheld.impl.spark.envelopes import flaws
from upheld.impl.spark.rows import NO_HEADERS, OUTPUT

ROLE = "dead_letters"
ADDED = ", ".join(
    f"struct('{name}' as key, cast(cast({name} as string) as binary) as value)"
    for name in ("reason", "topic", "partition", "offset")
)


def split(records: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Return the records that can be read, and the dead letters of the others."""
    udf: Any = arrow_udf  # its stub demands the argument that it warns of
    why = udf(flaws, StringType())
    looked_at = records.withColumn("reason", why("key", "value"))
    headers = (
        f"concat(coalesce(headers, {NO_HEADERS.replace('null', 'array()')}), array({ADDED})) AS "
        "headers"
    )
    letters = looked_at.where("reason IS NOT NULL").selectExpr(
        f"'{ROLE}' AS role", "key", "value", headers, "timestamp_ms"
    )
    return looked_at.where("reason IS NULL").drop("reason"), letters


def beside(rows: DataFrame, role: str, letters: DataFrame) -> DataFrame:
    """Return the dead letters and a program's rows, each with the role of its topic."""
    return letters.union(rows.selectExpr(f"'{role}' AS role", *OUTPUT.names))
