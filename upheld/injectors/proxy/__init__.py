"""A proxy between designs and brokers that knows Kafka's protocol: it forwards bytes as they are,
tells clients its own addresses, records what is asked and answered, and strikes where a rule says.

A rule names a moment: the n-th request of an API through a door. TCP loses nothing in the middle of
a connection, so what does not arrive takes all that would follow on its connection with it. An
error is told only where a broker might tell it. What the proxy cannot read it lets through to
nobody, and says so.
"""

import asyncio
import contextlib
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from kio.schema.errors import ErrorCode

from upheld.injectors.proxy.errors import Moment, demand, is_given, refusal
from upheld.injectors.proxy.frames import (
    METADATA,
    PRODUCE,
    Request,
    UnreadableError,
    correlation_id_of,
    decode,
    error_of,
    names,
    parse,
    places,
    stand_in,
    told,
)

BUFFER_BYTES = 1 << 20
FRAME_BYTES = 1 << 28  # more than a broker takes, and less than the first bytes of TLS would mean
READY_S = 10.0
FOLLOWED_S = 1.0  # who has more than one request under way sends the next by then

# These say which topics they are for.
PLACED = ("add_partitions_to_txn", "produce", "txn_offset_commit", "offset_commit")
TRANSACTION = (*PLACED, "add_offsets_to_txn", "end_txn")
EFFECTS = (  # the others ask
    *TRANSACTION,
    "init_producer_id",
    "join_group",
    "sync_group",
    "leave_group",
    "create_topics",
)

Fault = Literal["close", "hold", "silence", "refuse"]
Node = tuple[str, int]
Result = TypeVar("Result")


@dataclass
class Exchange:
    """A request and its answer: through which door, on which connection, what, when (monotonic,
    seconds), and what befell it.

    The error is the broker's own code, read where a rule strikes; told is the one that the client
    had in its place.
    """

    door: str
    connection: int
    api: str
    version: int
    client_id: str | None
    number: int  # of this API through this door, from one
    asked_s: float
    answered_s: float | None = None
    fault: str = ""
    error: int | None = None
    told: ErrorCode | None = None
    # And still to be told so.
    refusal: tuple[ErrorCode, bytes] | None = field(default=None, repr=False)
    # More went to the same place meanwhile.
    overtaken: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    # Answered, or its connection is gone.
    is_over: threading.Event = field(default_factory=threading.Event, repr=False)


@dataclass
class Rule:
    """Strike the n-th request of an API through a door, before the broker has it or after it has
    answered it.

    close: both sides lose the connection. hold: it waits until it is released or lost, and what
    follows on its connection with it; also when whoever asked is gone by then. silence: nothing
    passes on the connection any more. refuse: it is answered with an error that the broker might
    have given; before, the broker never has it, and after, it has done what was asked. Counted are
    the requests that this can befall, of one client or for one topic if it names them, and of its
    n-th transaction from here on.
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
    ended: int = 0  # transactions
    is_open: bool = False
    exchange: Exchange | None = None
    struck: threading.Event = field(default_factory=threading.Event, repr=False)
    released: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    is_lost: bool = False
    # Its connection is gone.
    given_up: threading.Event = field(default_factory=threading.Event, repr=False)

    def __post_init__(self) -> None:
        """ValueError for what no broker could do."""
        if self.fault == "refuse":
            demand(self.api, self.moment, self.error)
        if self.topic and self.api not in PLACED:
            raise ValueError(f"{self.api} does not say which topics it is for")

    def count(self, exchange: Exchange, request: Request, topics: dict[Any, str]) -> None:
        """See what is asked, and take aim at the one."""
        if exchange.door != self.door or self.struck.is_set():
            return
        if self._is_meant(exchange, request, topics):
            self.counted += 1
            if self.counted == self.number:
                self.exchange = exchange
        if self.client_id in (None, exchange.client_id) and exchange.api in TRANSACTION:
            # Once, however often it is asked for.
            self.ended += self.is_open and exchange.api == "end_txn"
            self.is_open = exchange.api != "end_txn"

    def _is_meant(self, exchange: Exchange, request: Request, topics: dict[Any, str]) -> bool:
        return (
            exchange.api == self.api
            and self.client_id in (None, exchange.client_id)
            and self.transaction in (0, self.ended + (self.is_open or exchange.api != "end_txn"))
            and (self.fault != "refuse" or is_given(request, self.moment, self.error))
            and (
                not self.topic
                or self.topic in {topics.get(topic, topic) for topic, _ in places(request)}
            )
        )

    def pass_over(self) -> None:
        """That one was not done, so it is the next one."""
        self.exchange, self.counted = None, self.number - 1


class Proxy:
    """Doors to a cluster that is reached in plain text; its thread ends with `close`."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.split(",", maxsplit=1)[0].rpartition(":")
        self._bootstrap = (host.strip("[]"), int(port))
        self.exchanges: list[Exchange] = []
        self.failure = ""  # what it could not read
        self.rules: list[Rule] = []
        self.topics: dict[Any, str] = {}  # id -> name, as clients were told
        self.connections = 0
        self._counts: Counter[tuple[str, str]] = Counter()
        self._listeners: dict[tuple[str, Node], tuple[Node, asyncio.Task[asyncio.Server]]] = {}
        self._serving: dict[asyncio.Task[None], str] = {}  # -> its door
        self._barred: Counter[str] = Counter()  # doors that let nobody in -> who came
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="wire", daemon=True)
        self._thread.start()

    def door(self, name: str) -> str:
        """The bootstrap address of a door; what comes through it carries its name."""
        host, port = self._call(self._open(name))
        return f"{host}:{port}"

    def arm(self, rule: Rule) -> None:
        """Begin to count for a rule: its first request is the next one."""
        self._call(self._arm(rule))

    def release(self, rule: Rule, *, is_lost: bool = False) -> None:
        """Let what a rule holds go on, or lose it with its connection."""
        rule.is_lost = is_lost
        self._loop.call_soon_threadsafe(rule.released.set)

    def bar(self, door: str) -> int:
        """Take every connection through a door, and let nobody in until it is opened; how many
        there were.
        """
        return self._call(self._bar(door))

    def unbar(self, door: str) -> int:
        """Let everybody in again; how many came meanwhile."""
        return self._call(self._unbar(door))

    def shut(self, door: str) -> list[Exchange]:
        """Let go of whoever came through a door, forget its rules, and return what it saw."""
        return self._call(self._shut(door))

    def close(self) -> None:
        """Let go of everybody."""
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(READY_S)
        self._loop.close()

    def _call(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(READY_S)

    async def _open(self, door: str) -> Node:
        return self.place(door, self._bootstrap)

    async def _arm(self, rule: Rule) -> None:
        self.rules.append(rule)

    async def _bar(self, door: str) -> int:
        self._barred[door] = 0
        return await self._let_go(door)

    async def _unbar(self, door: str) -> int:
        return self._barred.pop(door)

    async def _let_go(self, door: str) -> int:
        serving = [task for task, name in self._serving.items() if name == door]
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        return len(serving)

    async def _shut(self, door: str) -> list[Exchange]:
        for place in [place for place in self._listeners if place[0] == door]:
            (await self._listeners.pop(place)[1]).close()
        await self._let_go(door)
        seen = [exchange for exchange in self.exchanges if exchange.door == door]
        self.exchanges = [exchange for exchange in self.exchanges if exchange.door != door]
        self.rules = [rule for rule in self.rules if rule.door != door]
        return seen

    async def _end(self) -> None:
        for door in {door for door, _ in self._listeners}:
            await self._shut(door)

    def place(self, door: str, node: Node) -> Node:
        """The door's own address for a broker; from here on it is served."""
        if (door, node) not in self._listeners:
            listening = socket.create_server(("127.0.0.1", 0))

            async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                if door in self._barred:
                    self._barred[door] += 1
                    writer.close()
                    return
                task = asyncio.current_task()
                assert task
                self._serving[task] = door
                # Whoever started it asks it for its result.
                with contextlib.suppress(asyncio.CancelledError):
                    await _Connection(self, door, node).serve(reader, writer)
                del self._serving[task]

            opening = self._loop.create_task(
                asyncio.start_server(serve, sock=listening, limit=BUFFER_BYTES)
            )
            self._listeners[door, node] = listening.getsockname(), opening
        return self._listeners[door, node][0]

    def asked(self, door: str, connection: int, request: Request) -> Exchange:
        """Record a request."""
        self._counts[door, request.api] += 1
        number = self._counts[door, request.api]
        exchange = Exchange(
            door,
            connection,
            request.api,
            request.version,
            request.client_id,
            number,
            time.monotonic(),
        )
        self.exchanges.append(exchange)
        for rule in self.rules:
            rule.count(exchange, request, self.topics)
        return exchange

    def due(self, exchange: Exchange, moment: Moment) -> Rule | None:
        """The rule that is to strike there and then."""
        aimed = (rule for rule in self.rules if rule.exchange is exchange and rule.moment == moment)
        return next((rule for rule in aimed if not rule.struck.is_set()), None)


class _Lost(Exception):
    """A rule has taken the connection."""


class _Connection:
    """A client's connection and ours to the broker that it meant."""

    def __init__(self, proxy: Proxy, door: str, node: Node) -> None:
        self.proxy, self.door, self.node = proxy, door, node
        proxy.connections += 1
        self.number = proxy.connections
        self.pending: deque[tuple[Request, Exchange]] = deque()
        self.refused: list[tuple[set[Any], Exchange]] = []  # and still to be told so
        self.is_silent, self.is_held = False, False
        self.is_done = asyncio.Event()  # every request has its answer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry requests and answers until one side is gone, or a rule says so."""
        writers = [writer]
        try:
            broker_reader, broker_writer = await asyncio.open_connection(
                *self.node, limit=BUFFER_BYTES
            )
            writers.append(broker_writer)
            for each in writers:  # else a small answer waits 40 ms for an acknowledgement
                each.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ways = [
                asyncio.create_task(way)
                for way in (self._ask(reader, broker_writer), self._answer(broker_reader, writer))
            ]
            try:
                done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
            for way in done:
                way.result()
        except (OSError, asyncio.IncompleteReadError, _Lost):
            pass  # whoever is left learns it by its own connection's end
        except UnreadableError as error:
            self.proxy.failure = (
                self.proxy.failure or f"the wire carries what the proxy cannot read: {error}"
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, nothing that came through here proves anything
            self.proxy.failure = self.proxy.failure or f"the proxy failed: {error!r}"
        finally:
            for each in writers:
                each.close()
            for _, exchange in self.pending:
                exchange.is_over.set()
            for rule in self.proxy.rules:
                if rule.exchange and rule.exchange.connection == self.number:
                    rule.given_up.set()
                    rule.exchange.is_over.set()

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while frame := await self._heard(reader):
            if self.is_silent:
                continue
            request = parse(frame)
            exchange = self.proxy.asked(self.door, self.number, request)
            rule = await self._meet(exchange, "before")
            if self.is_silent:
                continue
            if rule and rule.fault == "refuse":
                exchange.refusal = rule.error, refusal(request, "before", rule.error)
                if request.api_key == PRODUCE:
                    self.refused.append((places(request), exchange))
                # Answers come in the order of requests: this one's is replaced.
                frame = stand_in(request)
            elif self.refused and request.api_key == PRODUCE:
                for where, earlier in self.refused:
                    if where & places(request):
                        earlier.overtaken.set()
            if request.is_answered:
                self.pending.append((request, exchange))
                self.is_done.clear()
            await _send(writer, frame)
        # Late, and nobody waits for it: answered all the same.
        if any(exchange.fault for _, exchange in self.pending):
            await self.is_done.wait()

    async def _heard(self, reader: asyncio.StreamReader) -> bytes:
        """The client's next frame; none where it is gone, and what it asked before is late."""
        try:
            return await _frame(reader)
        except (OSError, asyncio.IncompleteReadError):
            if not self.is_held:
                raise
            return b""

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while frame := await _frame(reader):
            if not self.pending:
                raise UnreadableError("an answer to nothing")
            request, exchange = self.pending.popleft()
            if not self.pending:
                self.is_done.set()
            if correlation_id_of(frame) != request.correlation_id:
                raise UnreadableError(
                    f"an answer to {correlation_id_of(frame)} where {request.correlation_id} was "
                    "asked"
                )
            if exchange.refusal:  # once more is under way to the same place, if the client does so
                if self.refused:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(exchange.overtaken.wait(), FOLLOWED_S)
                self.refused.clear()
                await _tell(writer, exchange, *exchange.refusal)
                continue
            own = self._read(request, exchange, frame)
            rule = await self._meet(exchange, "after")
            if self.is_silent:
                continue
            if rule and rule.fault == "refuse":
                await _tell(
                    writer, exchange, rule.error, refusal(request, "after", rule.error, own)
                )
                continue
            try:
                await _send(
                    writer, told(request, frame, lambda _, *node: self.proxy.place(self.door, node))
                )
            except OSError:  # nobody is there any more; what is held arrives all the same
                if not self.is_held:
                    raise
            exchange.is_over.set()

    def _read(self, request: Request, exchange: Exchange, frame: bytes) -> Any:
        """What the broker answers, where that is of interest here."""
        exchange.answered_s = time.monotonic()
        rule = self.proxy.due(exchange, "after")
        if not rule and not exchange.fault and request.api_key != METADATA:
            return None
        own = decode(request, frame)[1]
        if rule or exchange.fault:
            exchange.error = error_of(own)
        if rule and rule.fault == "refuse" and exchange.error:
            rule.pass_over()
        if request.api_key == METADATA:
            self.proxy.topics |= names(own)
        return own

    async def _meet(self, exchange: Exchange, moment: Moment) -> Rule | None:
        if not (rule := self.proxy.due(exchange, moment)):
            return None
        exchange.fault = f"{rule.fault} {moment}"
        rule.struck.set()
        if rule.fault == "hold":
            self.is_held |= moment == "before"
            await rule.released.wait()
        if rule.fault == "close" or rule.is_lost:
            raise _Lost
        self.is_silent = rule.fault == "silence"
        return rule


async def _frame(reader: asyncio.StreamReader) -> bytes:
    """The next frame without its length; nothing where the other side has closed between two."""
    try:
        size = int.from_bytes(await reader.readexactly(4), signed=True)
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return b""
    if not 0 < size < FRAME_BYTES:
        raise UnreadableError(f"a frame of {size} bytes")
    return await reader.readexactly(size)


async def _send(writer: asyncio.StreamWriter, frame: bytes) -> None:
    writer.write(len(frame).to_bytes(4) + frame)
    await writer.drain()


async def _tell(
    writer: asyncio.StreamWriter, exchange: Exchange, error: ErrorCode, answer: bytes
) -> None:
    await _send(writer, answer)
    exchange.told = error
    exchange.is_over.set()
