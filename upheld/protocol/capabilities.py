"""The capabilities that a design may declare.

A row that needs a capability which the design lacks is unsupported.
"""

from enum import StrEnum
from typing import Self


class Capability(StrEnum):
    """An offer of a design beyond reading, applying and writing, with a sentence."""

    sentence: str

    def __new__(cls, value: str, sentence: str) -> Self:
        """Make a member that is its value, with its sentence beside it."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.sentence = sentence
        return member

    REUSABLE = "reusable", "accepts another start after a stop"
    MEASURE = "measure", "says how much state it holds"
    LAG = "lag", "says how far it is behind"
    EFFECTS = "effects", "tells outputs outside of Kafka too"
    DEAD_LETTERS = "dead-letters", "sets aside what it cannot read"
    QUERY = "query", "answers for keys of its table"
    SCALE = (
        "scale",
        "several instances share the input, or one works and the others take over",
    )
    GROUP_PROTOCOL = (
        "group-protocol",
        "joins its group by the protocol that a start names, such as consumer (KIP-848)",
    )
    WORKERS = "workers", "processes that may be killed one by one share the work of an instance"
    STANDBY = "standby", "a second cluster takes over"
    SQLITE = "sqlite", "keeps state in SQLite"
    REDIS = "redis", "keeps state in Redis"
    CASSANDRA = "cassandra", "keeps state in Cassandra"
    STAGES_AT_ONCE = "stages-at-once", "stores all stages of a program in one transaction"
