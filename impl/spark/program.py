"""The programs of the reference design, and what each of them tells of itself."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame

from upheld.impl.common.stores import Store
from upheld.impl.spark import batcher, branches, ledger, pulse, relay
from upheld.impl.spark.joins import JOINS


class Program(Protocol):
    """A program as Spark runs it; mostly a module."""

    READS: tuple[str, ...]
    """The roles of the topics whose records are the stream."""

    BESIDE: tuple[str, ...]
    """The role of the topic that is read whole at the start, if there is one."""

    WRITES: str
    """The role of the topic that the results go to."""

    MADE_UP: bytes
    """The value of a record that every topic of the program could have."""

    BATCH_RECORDS: int
    """How many records a batch has at most."""

    ARROW_RECORDS: int
    """How many records Spark hands to Python together at most."""

    def build(
        self, records: DataFrame, beside: DataFrame | None, start: dict[str, Any], /
    ) -> DataFrame:
        """Return the results as a stream: key, value, headers and timestamp_ms."""
        ...


class States(Protocol):
    """The states of a program that a store keeps."""

    def apply(self, runs: pa.Table, /) -> pa.Table:
        """Apply the runs of a batch, and return the last row of all that changed."""
        ...

    def write(self) -> None:
        """Write to the store what has changed."""
        ...


class Stored(NamedTuple):
    """How a program runs if a store keeps its states, and not Spark."""

    runs_of: Callable[[DataFrame], DataFrame]
    states_of: Callable[[Store], States]


PROGRAMS: Final[dict[str, Program]] = {
    "relay": relay,
    "ledger": ledger,
    "branches": branches,
    "batcher": batcher,
    "pulse": pulse,
    **JOINS,
}
STORED: Final = {
    "ledger": Stored(ledger.runs_of, ledger.Stored),
    "branches": Stored(branches.runs_of, branches.Stored),
}
