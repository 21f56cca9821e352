"""The report of a run: its lines, its table, its cards and its exit code."""

from upheld.report.card import card, versions
from upheld.report.hints import hints
from upheld.report.matrix import matrix
from upheld.report.model import (
    FORMAT,
    Cost,
    RowResult,
    Summary,
    cpu_seconds,
    exit_code,
    median_seconds,
)
from upheld.report.table import COLOURS, table
from upheld.report.writer import Writer, file_of, read

__all__ = [
    "COLOURS",
    "FORMAT",
    "Cost",
    "RowResult",
    "Summary",
    "Writer",
    "card",
    "cpu_seconds",
    "exit_code",
    "file_of",
    "hints",
    "matrix",
    "median_seconds",
    "read",
    "table",
    "versions",
]
