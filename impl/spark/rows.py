"""The columns of what every program turns its input into."""

from pyspark.sql.types import ArrayType, BinaryType, LongType, StringType, StructType

OUTPUT = (
    StructType()
    .add("key", BinaryType())
    .add("value", BinaryType())
    .add("headers", ArrayType(StructType().add("key", StringType()).add("value", BinaryType())))
    .add("timestamp_ms", LongType())
)
NO_HEADERS = "cast(null as array<struct<key: string, value: binary>>)"
