"""The families of faults.

A mark bears its fault's family as a code that checks and readers can rely on.
"""

from enum import StrEnum


class Family(StrEnum):
    """The kind of thing that a fault strikes."""

    PROCESS = "process"
    MEMBERSHIP = "membership"
    REQUEST = "request"
    BROKER = "broker"
    STORE = "store"
    DISK = "disk"
    CLOCK = "clock"
    INPUT = "input"
