"""The layout that all stores share, and what the harness reads of it."""

from typing import NamedTuple


class Kept(NamedTuple):
    """A row that a store keeps: stage, key and value."""

    stage: str
    key: str
    value: str


class Written(NamedTuple):
    """A write that a store saw: the seconds since then, stage and key."""

    ago_s: float
    stage: str
    key: str
