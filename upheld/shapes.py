"""Shapes: what the outputs of a dataflow hang on.

A scenario asks for a shape where its promise hangs on no program of ours: `a fold in mode
exactly_once`. The shipped instance of the shape is judged there, or an application without an
adapter. A scenario names a program where its promise hangs on what that program alone has, such as
the envelope of `relay`. Joins are named, as each of them is another one.
"""

from collections.abc import Mapping
from typing import Final, Literal

Shape = Literal["map", "fold", "table", "batch", "join"]

SHAPES: Final[Mapping[str, Shape]] = {
    "relay": "map",
    "ledger": "fold",
    "branches": "fold",
    "pulse": "table",
    "batcher": "batch",
    "clients": "join",
    "tickers": "join",
    "holdings": "join",
}

# Shape -> the shipped program that is judged where a scenario asks for it.
INSTANCES: Final[Mapping[str, str]] = {
    "map": "relay",
    "fold": "ledger",
    "table": "pulse",
    "batch": "batcher",
}
