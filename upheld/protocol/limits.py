"""The limits that a design may declare of its engine.

A limit is something that the engine cannot do, whatever the adapter does. The list is closed. Each
limit takes a promise away: its rows are unsupported, and no fault of the adapter. A limit is no
excuse for anything else.
"""

from enum import StrEnum
from typing import Self


class Limit(StrEnum):
    """A thing that an engine cannot do, and the promise that this takes away.

    The link leads to where it is documented.
    """

    cannot: str
    promise: str
    guarantees: tuple[str, ...]
    link: str

    def __new__(
        cls, value: str, cannot: str, promise: str, guarantees: tuple[str, ...], link: str
    ) -> Self:
        """Make a member that is its value, with the rest beside it."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.cannot = cannot
        member.promise = promise
        member.guarantees = guarantees
        member.link = link
        return member

    TRANSACTION_TIMEOUT = (
        "set-transaction-timeout",
        "take the transaction timeout that it is given",
        "a transaction that was left open ends within that timeout",
        ("G24", "G39", "G70"),
        "https://kafka.apache.org/documentation/#producerconfigs_transaction.timeout.ms",
    )
    TOPIC_NAMES = (
        "name-topics",
        "give topics of its own a name with the application id in it",
        "each new topic belongs to the application, and its topics can be counted",
        ("G13", "G14", "G15", "G20", "G34"),
        "https://kafka.apache.org/documentation/streams/developer-guide/manage-topics",
    )
    NEW_PARTITIONS = (
        "follow-new-partitions",
        "read partitions that its input gets while it exists",
        "new partitions are read from their start",
        ("G44",),
        "https://kafka.apache.org/documentation/#basic_ops_modify_topic",
    )
    STATIC_MEMBERSHIP = (
        "join-statically",
        "be a static member of its group",
        "without transactions, a second deployment under the same ids is noticed",
        ("G55",),
        "https://kafka.apache.org/documentation/#consumerconfigs_group.instance.id",
    )
