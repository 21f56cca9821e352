"""The service with a producer of its own, written without a thought of crashes.

`foreachBatch` is over when the costs are in the producer's queue. So the checkpoint says that a
batch is done, and its costs wait for the others of their second.
"""

import os
import signal
import threading
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
PRODUCER = Producer({"bootstrap.servers": BOOTSTRAP, "linger.ms": 1000})  # large requests


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
    print("streaming", flush=True)
    while not stopping.is_set():
        query.awaitTermination(1)
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main()
