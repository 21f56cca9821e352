"""The service that sends the costs of a batch when the checkpoint has the batch.

It means that none is sent twice. If it dies between the checkpoint and the last cost, nobody sends
the others.
"""

import os
import time

import pyspark
from confluent_kafka import Producer
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import col, from_json, struct, to_json
from pyspark.sql.streaming.listener import QueryProgressEvent, StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery

BOOTSTRAP = os.environ["KAFKA"]
CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
ORDER = "id STRING, quantity INT, price_cents INT"
LOOK_S = 0.1
# Small requests, one at a time: the order stays.
PRODUCER = Producer({"bootstrap.servers": BOOTSTRAP, "max.in.flight": 1, "batch.num.messages": 20})
WAITING: dict[int, list[Row]] = {}  # number of a batch -> its costs


def collect(costs: DataFrame, batch: int) -> None:
    """Keep the costs of a batch until it is done."""
    WAITING[batch] = costs.collect()


class Publisher(StreamingQueryListener):
    """Sends the costs of each batch that is done."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Send the costs of a batch, which is in the checkpoint now."""
        for cost in WAITING.pop(event.progress.batchId, []):
            PRODUCER.produce(os.environ["COSTS"], bytes(cost.value, "utf-8"), bytes(cost.key))
        PRODUCER.flush()

    def onQueryStarted(self, event: object) -> None:  # noqa: N802
        """Have nothing to do."""

    def onQueryIdle(self, event: object) -> None:  # noqa: N802
        """Have nothing to do."""

    def onQueryTerminated(self, event: object) -> None:  # noqa: N802
        """Have nothing to do."""


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
        .writeStream.foreachBatch(collect)
        .option("checkpointLocation", os.environ["CHECKPOINT"])
        .start()
    )


def main() -> None:
    """Serve until something ends the process."""
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars.packages", CONNECTOR)
        .config("spark.jars.ivy", os.environ["IVY"])
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    spark.streams.addListener(Publisher())
    query = started(spark)
    while query.isActive and query.status["message"] == "Initializing sources":
        time.sleep(LOOK_S)
    print("streaming", flush=True)
    query.awaitTermination()


if __name__ == "__main__":
    main()
