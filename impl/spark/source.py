"""Spark's Kafka source: the records of topics, with the ids of the topics."""

import json
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, DataFrameReader
from pyspark.sql.streaming.readwriter import DataStreamReader

COLUMNS: Final = (
    "key",
    "value",
    "headers",
    "topic",
    "partition",
    "offset",
    "unix_millis(timestamp) AS timestamp_ms",
)


def read(
    reader: DataFrameReader | DataStreamReader,
    start: dict[str, Any],
    topic_ids: dict[str, bytes],
    at_most: int,
) -> DataFrame:
    """Return the committed records of topics.

    Args:
        reader: One for a stream, or one for the records as they are now.
        start: The request that the design was started with.
        topic_ids: The topics, and the ids that their records are to have.
        at_most: How many records a batch of a stream may have.
    """
    ids = " ".join(
        f"WHEN '{topic}' THEN unhex('{each.hex()}')" for topic, each in topic_ids.items()
    )
    options = {
        "subscribe": ",".join(topic_ids),
        "startingOffsets": start["offset_reset"],
        "includeHeaders": "true",
        "kafka.bootstrap.servers": start["bootstrap"],
        "kafka.isolation.level": "read_committed",
        "groupIdPrefix": start["application_id"],
        "kafka.fetch.max.wait.ms": 10,
        "kafka.max.poll.records": 10_000,
        "maxOffsetsPerTrigger": at_most,
        **security(start["client"]),
    }
    return (
        reader.format("kafka")
        .options(**options)
        .load()
        .selectExpr(*COLUMNS, f"CASE topic {ids} END AS topic_id")
    )


def security(client: dict[str, str]) -> dict[str, str]:
    """Return librdkafka's security properties as Spark's options for the Java client."""
    options: dict[str, str] = {}
    for name, value in client.items():
        match name:
            case "sasl.mechanism" | "sasl.mechanisms":
                options["sasl.mechanism"] = value
            case "ssl.ca.location":
                options |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": value}
            case "ssl.certificate.location":
                options["ssl.keystore.type"] = "PEM"
                options["ssl.keystore.certificate.chain"] = Path(value).read_text()
            case "ssl.key.location":
                options["ssl.keystore.key"] = Path(value).read_text()
            case "ssl.endpoint.identification.algorithm":
                options[name] = "" if value == "none" else value
            case "security.protocol" | "ssl.key.password":
                options[name] = value
    if "sasl.username" in client:
        options["sasl.jaas.config"] = _login(client, options.get("sasl.mechanism", ""))
    return {f"kafka.{name}": value for name, value in options.items()}


def _login(client: dict[str, str], mechanism: str) -> str:
    """Return the Java client's login for a user and a password."""
    module = "scram.ScramLoginModule" if "SCRAM" in mechanism else "plain.PlainLoginModule"
    user = json.dumps(client["sasl.username"])
    password = json.dumps(client["sasl.password"])
    return (
        f"org.apache.kafka.common.security.{module} required username={user} password={password};"
    )
