"""The requests that the proxy records, and the rules that say where it strikes."""

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from kio.schema.errors import ErrorCode

from upheld.injectors.proxy.errors import Moment, demand, is_given
from upheld.injectors.proxy.frames import Request, TopicKey, places

# The requests that list the topics they are for.
PLACED: Final = ("add_partitions_to_txn", "produce", "txn_offset_commit", "offset_commit")
TRANSACTION: Final = (*PLACED, "add_offsets_to_txn", "end_txn")
# The requests that change something; all others only ask.
EFFECTS: Final = (
    *TRANSACTION,
    "init_producer_id",
    "join_group",
    "sync_group",
    "leave_group",
    "create_topics",
)

Fault = Literal["close", "hold", "silence", "refuse"]


@dataclass
class Exchange:
    """A request, its answer, and the fault that struck it.

    Times are monotonic seconds. `error` is the broker's own code, which is read where a rule
    strikes. `told` is the error that the client got in its place.
    """

    door: str
    connection: int
    api: str
    version: int
    client_id: str | None
    number: int  # among the requests of this API through this door, from one
    asked_s: float
    answered_s: float | None = None
    fault: str = ""
    error: int | None = None
    told: ErrorCode | None = None
    # An error, and the answer with it, that the client has still to get.
    refusal: tuple[ErrorCode, bytes] | None = field(default=None, repr=False)
    # Set when a later request for the same partition has come.
    overtaken: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    # Set when the request is answered, or its connection is gone.
    is_over: threading.Event = field(default_factory=threading.Event, repr=False)


@dataclass
class Rule:
    """Strike the n-th request of an API through a door.

    A rule strikes before the broker has the request, or after the broker has answered it. Faults:

    - close: the client and the broker both lose the connection.
    - hold: the request, and all that follows it on its connection, waits until it is released or
      lost. This holds too if the client is gone by then.
    - silence: nothing passes on the connection any more.
    - refuse: the client gets an error that the broker might have given. Before, the broker never
      has the request; after, it has applied it.

    The rule counts the requests that its fault can befall. If it names a client or a topic, it
    counts theirs alone. If it names a transaction, it counts in the n-th one from here on.

    Raises:
        ValueError: No broker could do this.
    """

    door: str
    api: str
    fault: Fault
    moment: Moment = "before"
    number: int = 1
    error: ErrorCode = ErrorCode.not_enough_replicas
    client_id: str | None = None
    topic: str = ""
    transaction: int = 0
    counted: int = 0
    passed_over: int = 0  # requests that a broker does not refuse with that error
    ended: int = 0  # transactions
    is_open: bool = False
    exchange: Exchange | None = None
    struck: threading.Event = field(default_factory=threading.Event, repr=False)
    released: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    is_lost: bool = False
    # Set when the connection that was struck is gone.
    given_up: threading.Event = field(default_factory=threading.Event, repr=False)

    def __post_init__(self) -> None:
        """Raise ValueError for a fault that no broker could make."""
        if self.fault == "refuse":
            demand(self.api, self.moment, self.error)
        if self.topic and self.api not in PLACED:
            raise ValueError(f"{self.api} does not say which topics it is for")

    def count(self, exchange: Exchange, request: Request, topics: Mapping[TopicKey, str]) -> None:
        """Count a request, and take its exchange if it is the n-th."""
        if exchange.door != self.door or self.struck.is_set():
            return
        if self._is_meant(exchange, request, topics):
            self.counted += 1
            if self.counted == self.number:
                self.exchange = exchange
        if self.client_id in (None, exchange.client_id) and exchange.api in TRANSACTION:
            # A transaction ends once, however often its end is asked for.
            self.ended += self.is_open and exchange.api == "end_txn"
            self.is_open = exchange.api != "end_txn"

    def _is_meant(
        self, exchange: Exchange, request: Request, topics: Mapping[TopicKey, str]
    ) -> bool:
        is_named = (
            exchange.api == self.api
            and self.client_id in (None, exchange.client_id)
            and self.transaction in (0, self.ended + (self.is_open or exchange.api != "end_txn"))
            and (
                not self.topic
                or self.topic in {topics.get(topic, topic) for topic, _ in places(request)}
            )
        )
        if not is_named:
            return False
        if self.fault == "refuse" and not is_given(request, self.moment, self.error):
            self.passed_over += 1
            return False
        return True

    def pass_over(self) -> None:
        """Leave an exchange that the broker did not apply: the next one counts."""
        self.exchange = None
        self.counted = self.number - 1
