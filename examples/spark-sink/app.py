"""A service that writes what each order costs, by Spark Structured Streaming.

Source and sink are those that come with Spark. How far it is stands in a checkpoint, which has to
outlive the process. After a crash the last batch is written once more.
"""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, from_json, struct, to_json
from pyspark.sql.streaming.query import StreamingQuery

BOOTSTRAP = os.environ["KAFKA"]
CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
ORDER = "id STRING, quantity INT, price_cents INT"
LOOK_S = 0.1
OF_NO_OBJECT = {"v1", "-"}  # the version of a file, and a source without an offset


def started(spark: SparkSession) -> StreamingQuery:
    """Start the query, which goes on from its checkpoint if there is one."""
    orders = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", BOOTSTRAP)
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", os.environ["ORDERS"])
        .option("startingOffsets", "earliest")
        .load()
    )
    order = from_json(col("value").cast("string"), ORDER).alias("order")
    cost_cents = (col("order.quantity") * col("order.price_cents")).alias("cost_cents")
    cost = to_json(struct(col("order.id").alias("order"), cost_cents)).alias("value")
    return (
        orders.select("key", order)
        .select("key", cost)
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", BOOTSTRAP)
        .option("topic", os.environ["COSTS"])
        .option("checkpointLocation", os.environ["CHECKPOINT"])
        .start()
    )


def cut(checkpoint: Path) -> list[Path]:
    """Return the files of a checkpoint that end within a line.

    Spark refuses them, and does not name each of them.
    """
    return [
        file
        for file in sorted(checkpoint.glob("**/[!.]*"))
        if file.is_file() and not all(map(is_whole, file.read_text().splitlines()))
    ]


def is_whole(line: str) -> bool:
    """Return whether a line of a checkpoint has its end."""
    if line in OF_NO_OBJECT:
        return True
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def main() -> None:
    """Serve until SIGTERM; an error of the query ends the process."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars.packages", CONNECTOR)
        .config("spark.jars.ivy", os.environ["IVY"])
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    query = started(spark)
    while query.isActive and query.status["message"] == "Initializing sources":
        time.sleep(LOOK_S)
    if not query.isActive:
        for file in cut(Path(os.environ["CHECKPOINT"])):
            print(f"{file} is cut", file=sys.stderr)
        query.awaitTermination()  # raises what has ended it
    print("streaming", flush=True)
    while not stopping.is_set():
        query.awaitTermination(1)
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main()
