"""A proxy between designs and brokers that knows Kafka's protocol: it forwards bytes as they are, tells clients its own
addresses, records what is asked and answered, and strikes where a rule says.

A rule names a moment: the n-th request of an API through a door. TCP loses nothing in the middle of a connection, so what does
not arrive takes all that would follow on its connection with it. What the proxy cannot read it lets through to nobody, and
says so.
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

from streamgate.faults.wire.frames import Request, UnreadableError, correlation_id_of, parse, told

BUFFER_BYTES = 1 << 20
FRAME_BYTES = 1 << 28  # more than a broker takes, and less than the first bytes of TLS would mean
READY_S = 10.0

Moment = Literal["before", "after"]
Node = tuple[str, int]
Result = TypeVar("Result")


@dataclass
class Exchange:
    """A request and its answer: through which door, on which connection, what, when (monotonic, seconds), and what befell it."""

    door: str
    connection: int
    api: str
    version: int
    client_id: str | None
    number: int  # of this API through this door, from one
    asked_s: float
    answered_s: float | None = None
    fault: str = ""


@dataclass
class Rule:
    """Strike the n-th request of an API through a door, before the broker has it or after it has answered it.

    close: both sides lose the connection. hold: it waits until it is released, and what follows on its connection with it; also
    when whoever asked is gone by then. silence: nothing passes on the connection any more.
    """

    door: str
    api: str
    fault: Literal["close", "hold", "silence"]
    moment: Moment = "before"
    number: int = 1
    struck: threading.Event = field(default_factory=threading.Event, repr=False)
    released: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    def strikes(self, exchange: Exchange, moment: Moment) -> bool:
        """Whether this is the one."""
        place = (exchange.door, exchange.api, exchange.number, moment)
        return place == (self.door, self.api, self.number, self.moment) and not self.struck.is_set()


class Proxy:
    """Doors to a cluster that is reached in plain text; its thread ends with `close`."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.split(",", maxsplit=1)[0].rpartition(":")
        self._bootstrap = (host.strip("[]"), int(port))
        self.exchanges: list[Exchange] = []
        self.failure = ""  # what it could not read
        self.rules: list[Rule] = []
        self.connections = 0
        self._counts: Counter[tuple[str, str]] = Counter()
        self._listeners: dict[tuple[str, Node], tuple[Node, asyncio.Task[asyncio.Server]]] = {}
        self._serving: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="wire", daemon=True)
        self._thread.start()

    def door(self, name: str) -> str:
        """The bootstrap address of a door; what comes through it carries its name."""
        host, port = self._call(self._open(name))
        return f"{host}:{port}"

    def release(self, rule: Rule) -> None:
        """Let what a rule holds go on."""
        self._loop.call_soon_threadsafe(rule.released.set)

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

    async def _end(self) -> None:
        for _, opening in self._listeners.values():
            (await opening).close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def place(self, door: str, node: Node) -> Node:
        """The door's own address for a broker; from here on it is served."""
        if (door, node) not in self._listeners:
            listening = socket.create_server(("127.0.0.1", 0))

            async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                task = asyncio.current_task()
                assert task
                self._serving.add(task)
                with contextlib.suppress(asyncio.CancelledError):  # whoever started it asks it for its result
                    await _Connection(self, door, node).serve(reader, writer)
                self._serving.discard(task)

            opening = self._loop.create_task(asyncio.start_server(serve, sock=listening, limit=BUFFER_BYTES))
            self._listeners[door, node] = listening.getsockname(), opening
        return self._listeners[door, node][0]

    def asked(self, door: str, connection: int, request: Request) -> Exchange:
        """Record a request."""
        self._counts[door, request.api] += 1
        number = self._counts[door, request.api]
        exchange = Exchange(door, connection, request.api, request.version, request.client_id, number, time.monotonic())
        self.exchanges.append(exchange)
        return exchange


class _Lost(Exception):
    """A rule has taken the connection."""


class _Connection:
    """A client's connection and ours to the broker that it meant."""

    def __init__(self, proxy: Proxy, door: str, node: Node) -> None:
        self.proxy, self.door, self.node = proxy, door, node
        proxy.connections += 1
        self.number = proxy.connections
        self.pending: deque[tuple[Request, Exchange]] = deque()
        self.is_silent = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry requests and answers until one side is gone, or a rule says so."""
        writers = [writer]
        try:
            broker_reader, broker_writer = await asyncio.open_connection(*self.node, limit=BUFFER_BYTES)
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
            self.proxy.failure = self.proxy.failure or f"the wire carries what the proxy cannot read: {error}"
        finally:
            for each in writers:
                each.close()

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while frame := await _frame(reader):
            if self.is_silent:
                continue
            request = parse(frame)
            exchange = self.proxy.asked(self.door, self.number, request)
            await self._meet(exchange, "before")
            if self.is_silent:
                continue
            if request.is_answered:
                self.pending.append((request, exchange))
            await _send(writer, frame)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while frame := await _frame(reader):
            if not self.pending:
                raise UnreadableError("an answer to nothing")
            request, exchange = self.pending.popleft()
            if correlation_id_of(frame) != request.correlation_id:
                raise UnreadableError(
                    f"an answer to {correlation_id_of(frame)} where {request.correlation_id} was asked"
                )
            exchange.answered_s = time.monotonic()
            await self._meet(exchange, "after")
            if not self.is_silent:
                await _send(writer, told(request, frame, lambda _, *node: self.proxy.place(self.door, node)))

    async def _meet(self, exchange: Exchange, moment: Moment) -> None:
        for rule in self.proxy.rules:
            if rule.strikes(exchange, moment):
                exchange.fault = f"{rule.fault} {moment}"
                rule.struck.set()
                if rule.fault == "close":
                    raise _Lost
                if rule.fault == "hold":
                    await rule.released.wait()
                else:
                    self.is_silent = True


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
