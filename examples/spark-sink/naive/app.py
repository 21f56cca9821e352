"""The service with a producer of its own, written without a thought of its end.

`foreachBatch` is over when the costs are in the producer's queue. So the checkpoint says that a
batch is done, while its costs wait there for others, and end with the process.
"""

import os
import time

import pyspark
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, from_json, struct, to_json
from pyspark.sql.streaming.query import StreamingQuery

BOOTSTRAP = os.environ["KAFKA"]
CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
ORDER = "id STRING, quantity INT, price_cents INT"
LOOK_S = 0.1
PRODUCER = Producer({"bootstrap.servers": BOOTSTRAP, "linger.ms": 2000})  # large requests


def publish(costs: DataFrame, _: int) -> None:
    """Send the costs of a batch."""
    for cost in costs.collect():
        PRODUCER.produce(os.environ["COSTS"], bytes(cost.value, "utf-8"), bytes(cost.key))
    PRODUCER.poll(0)


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
        .writeStream.foreachBatch(publish)
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
    query = started(spark)
    while query.isActive and query.status["message"] == "Initializing sources":
        time.sleep(LOOK_S)
    print("streaming", flush=True)
    query.awaitTermination()


if __name__ == "__main__":
    main()
