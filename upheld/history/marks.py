"""What a mark is evidence of: the family of a fault, its stable code beside the text that a person reads."""

from enum import StrEnum


class Family(StrEnum):
    """What a fault is done to."""

    PROCESS = "process"
    MEMBERSHIP = "membership"
    REQUEST = "request"
    BROKER = "broker"
    STORE = "store"
    DISK = "disk"
    CLOCK = "clock"
    INPUT = "input"
