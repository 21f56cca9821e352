"""Bring Spark's connector for Kafka into `packages`, before any start needs it."""

from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"

if __name__ == "__main__":
    (
        SparkSession.builder.master("local[1]")
        .config("spark.jars.packages", CONNECTOR)
        .config("spark.jars.ivy", str(Path(__file__).parent / "packages"))
        .config("spark.ui.enabled", "false")
        .getOrCreate()
        .stop()
    )
