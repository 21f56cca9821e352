"""A proxy between designs and brokers that reads Kafka's protocol.

It forwards bytes as they are, but tells clients its own addresses, and shortens timeouts where it
is told to. It records requests and answers, and strikes where a rule says: at the n-th request of
an API through a door. TCP loses nothing in the middle of a connection. So a request that does not
arrive takes all that would follow on its connection with it. A client gets an error only where a
broker might give it. A frame that the proxy cannot read is not forwarded, and becomes the proxy's
failure. A client's bytes that no broker takes become the client's breach, and end its connection.
All that a client can have kept here has a limit.
"""

import asyncio
import contextlib
import resource
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, Literal, NamedTuple, TypeVar

from kio.schema.errors import ErrorCode
from kio.static.protocol import Entity

from upheld.injectors.proxy.errors import Moment, refusal, translated
from upheld.injectors.proxy.frames import (
    API_VERSIONS,
    METADATA,
    PRODUCE,
    NoRequestError,
    Request,
    TopicKey,
    UnreadableError,
    correlation_id_of,
    decode,
    error_of,
    fall_back,
    names,
    offers,
    parse,
    places,
    rewrite,
    stand_in,
)
from upheld.injectors.proxy.offers import Offer
from upheld.injectors.proxy.rules import Exchange, Rule
from upheld.injectors.proxy.security import Login, Security
from upheld.injectors.proxy.timeouts import Timeouts
from upheld.threads import Heard

BUFFER_BYTES: Final = 1 << 20
LENGTH_BYTES: Final = 4  # before each frame
FRAME_BYTES: Final = 1 << 28  # of an answer; the first bytes of TLS would mean more
REQUEST_BYTES: Final = 100 << 20  # a broker takes no more, by its default
SMALL_BYTES: Final = 1 << 16  # frames of that size need no room of those below
ROOM_BYTES: Final = 1 << 29  # for all frames that are under way
MOST_CONNECTIONS: Final = 512
MOST_PENDING: Final = 10_000  # requests without an answer, on one connection
MOST_EXCHANGES: Final = 200_000  # that are kept of all open doors; each takes 2.3 KB
MOST_ADDRESSES: Final = 256  # of brokers, as doors see them
SPARE_FILES: Final = 256  # for the rest of the harness
LINGER_S: Final = 2.0  # a side that does not read for so long loses what it was sent
ACCEPT_TURNS: Final = 6
CROWDED_S: Final = 0.01
READY_S: Final = 10.0
FOLLOWED_S: Final = 1.0  # a client with several requests in flight sends the next one by then

Way = Literal["requests", "answers"]
Node = tuple[str, int]  # host and port
Result = TypeVar("Result")
# Hears each request, and later its answer as the broker gave it, on the proxy's thread.
Tap = Callable[[Exchange, Request, bytes | None], None]


class Proxy:
    """Doors to a cluster that is reached in plain text; its thread ends with `close`.

    A door may be secured: then its clients use TLS, or log in, and the proxy has the other end.
    """

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.split(",", maxsplit=1)[0].rpartition(":")
        self._bootstrap = (host.strip("[]"), int(port))
        self.exchanges: list[Exchange] = []
        self.failure = ""  # why no verdict may rely on this proxy
        self.unread = ""  # the first frame since the last look that could not be read
        self.breach = ""  # the first thing since then that a broker would not take either
        self.rules: list[Rule] = []
        self.taps: list[Tap] = []
        self.topics: dict[TopicKey, str] = {}  # id -> name, as clients were told
        self.timeouts: dict[str, Timeouts] = {}  # door -> those that its clients ask for
        self.securities: dict[str, Security] = {}  # door -> that of its clients
        self.offers: dict[str, Offer] = {}  # API -> its versions, as brokers said
        self.connections = 0
        self._counts: Counter[tuple[str, str]] = Counter()
        self._listeners: dict[tuple[str, Node], tuple[Node, asyncio.Task[asyncio.Server]]] = {}
        self._serving: dict[asyncio.Task[None], str] = {}  # a connection -> its door
        self._barred: Counter[str] = Counter()  # barred doors -> how many clients came
        self._most_connections = most_connections()
        self.room = ROOM_BYTES
        self._loop = asyncio.new_event_loop()
        self._thread = Heard(self._loop.run_forever, name="wire")
        self._thread.start()

    def door(self, name: str, security: Security | None = None) -> str:
        """Return the bootstrap address of a door; exchanges through it carry its name.

        Args:
            name: The name of the door.
            security: How its clients are secured; None is plain text.
        """
        if security:
            self.securities[name] = security
        host, port = self._call(self._open(name))
        return f"{host}:{port}"

    @property
    def addresses(self) -> set[Node]:
        """The addresses at which it serves clients."""
        return {address for address, _ in list(self._listeners.values())}

    def arm(self, rule: Rule) -> None:
        """Begin to count for a rule: its first request is the next one."""
        self._call(self._arm(rule))

    def release(self, rule: Rule, *, is_lost: bool = False) -> None:
        """Let a request that a rule holds go on, or lose it with its connection."""
        rule.is_lost = is_lost
        self._loop.call_soon_threadsafe(rule.released.set)

    def bar(self, door: str) -> int:
        """Close a door and its connections, and return how many there were."""
        return self._call(self._bar(door))

    def unbar(self, door: str) -> int:
        """Open a door again, and return how many clients came meanwhile."""
        return self._call(self._unbar(door))

    def shut(self, door: str) -> list[Exchange]:
        """End a door and its connections, forget its rules, and return its exchanges."""
        return self._call(self._shut(door))

    def look(self) -> "Trouble":
        """Return what went wrong since the last look; a failure of the proxy itself stays."""
        found = Trouble(self.failure or self.unread, self.breach)
        self.unread = ""
        self.breach = ""
        return found

    def close(self) -> None:
        """End all doors, and the thread."""
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(READY_S)
        self._loop.close()

    def _call(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(READY_S)

    async def _open(self, door: str) -> Node:
        return self.address_of(door, self._bootstrap)

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
        servers = [
            await self._listeners.pop(place)[1]
            for place in [place for place in self._listeners if place[0] == door]
        ]
        for listening in (each for server in servers for each in server.sockets):
            self._loop.remove_reader(listening)
        # A connection that was just accepted needs some turns of the loop to be known. A server
        # that is closed before forgets it, and its socket stays open.
        for _ in range(ACCEPT_TURNS):
            await asyncio.sleep(0)
        for server in servers:
            server.close()
        await self._let_go(door)
        seen = [exchange for exchange in self.exchanges if exchange.door == door]
        self.exchanges = [exchange for exchange in self.exchanges if exchange.door != door]
        self.rules = [rule for rule in self.rules if rule.door != door]
        self.timeouts.pop(door, None)
        self.securities.pop(door, None)
        for key in [key for key in self._counts if key[0] == door]:
            del self._counts[key]
        return seen

    async def _end(self) -> None:
        for door in {door for door, _ in self._listeners}:
            await self._shut(door)

    def address_of(self, door: str, node: Node) -> Node:
        """Return the door's own address for a broker, and serve it from here on."""
        if (door, node) not in self._listeners:
            if len(self._listeners) >= MOST_ADDRESSES:
                raise UnreadableError(f"answers that name more than {MOST_ADDRESSES} brokers")
            listening = socket.create_server(("127.0.0.1", 0))

            async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                if door in self._barred:
                    self._barred[door] += 1
                    writer.close()
                    return
                if len(self._serving) >= self._most_connections:
                    self.breach = self.breach or (
                        f"{door} has more than {self._most_connections} connections at once"
                    )
                    writer.close()
                    return
                task = asyncio.current_task()
                assert task
                self._serving[task] = door
                # The server asks this task for its result.
                with contextlib.suppress(asyncio.CancelledError):
                    await _Connection(self, door, node).serve(reader, writer)
                del self._serving[task]

            security = self.securities.get(door)
            tls = security.tls if security else None
            opening = self._loop.create_task(
                asyncio.start_server(serve, sock=listening, limit=BUFFER_BYTES, ssl=tls)
            )
            self._listeners[door, node] = listening.getsockname(), opening
        return self._listeners[door, node][0]

    def record(self, door: str, connection: int, request: Request) -> Exchange:
        """Record a request, and return its exchange.

        Raises:
            NoRequestError: There are too many of them.
        """
        if len(self.exchanges) >= MOST_EXCHANGES:
            raise NoRequestError(f"more than {MOST_EXCHANGES} requests")
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
        self.tell(exchange, request)
        return exchange

    def tell(self, exchange: Exchange, request: Request, answer: bytes | None = None) -> None:
        """Let each tap hear a request, or the answer to one."""
        for tap in self.taps:
            tap(exchange, request, answer)

    def due_rule(self, exchange: Exchange, moment: Moment) -> Rule | None:
        """Return the rule that is to strike an exchange at a moment, if there is one."""
        aimed = (rule for rule in self.rules if rule.exchange is exchange and rule.moment == moment)
        return next((rule for rule in aimed if not rule.struck.is_set()), None)


class Trouble(NamedTuple):
    """Why no verdict may rely on the proxy, and what no broker would take."""

    failure: str
    breach: str


def most_connections() -> int:
    """Return how many connections this process has files for; each has two."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(1, min(MOST_CONNECTIONS, (soft - SPARE_FILES) // 2))


class _Lost(Exception):
    """A rule has ended the connection."""


class _Connection:
    """A client's connection, and the proxy's own to the broker that it leads to."""

    def __init__(self, proxy: Proxy, door: str, node: Node) -> None:
        self.proxy = proxy
        self.door = door
        self.node = node
        security = proxy.securities.get(door)
        self.login = security.login() if security else None
        proxy.connections += 1
        self.number = proxy.connections
        self.pending: deque[tuple[Request, Exchange]] = deque()
        # Refused produces that the client does not know of yet, with their partitions.
        self.refused: list[tuple[set[tuple[TopicKey, int]], Exchange]] = []
        self.is_silent = False
        self.is_held = False
        self.is_done = asyncio.Event()  # set when every request has its answer
        self.taken: Counter[Way] = Counter()  # bytes of room

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry requests and answers until one side is gone, or a rule ends it."""
        writers = [writer]
        try:
            broker_reader, broker_writer = await asyncio.open_connection(
                *self.node, limit=BUFFER_BYTES
            )
            writers.append(broker_writer)
            for each in writers:  # else a small answer waits 40 ms for an acknowledgement
                each.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await _first_end(
                self._carry_requests(reader, broker_writer, writer),
                self._carry_answers(broker_reader, writer),
            )
        except (OSError, asyncio.IncompleteReadError, _Lost):
            pass  # the side that is left learns it by its own connection's end
        except NoRequestError as error:
            self.proxy.breach = self.proxy.breach or f"a client of {self.door} sent {error}"
        except UnreadableError as error:
            self.proxy.unread = self.proxy.unread or (
                f"the wire carries what the proxy cannot read: {error}"
            )
        except Exception as error:  # noqa: BLE001 - after any error nothing here proves anything
            self.proxy.failure = self.proxy.failure or f"the proxy failed: {error!r}"
        finally:
            self._end(writers)

    def _end(self, writers: list[asyncio.StreamWriter]) -> None:
        """Close both sides, and wake those that wait for a request on this connection."""
        task = asyncio.current_task()
        for each in writers:
            each.close()
            # What is not sent yet would keep a socket open as long as its other side does not read.
            linger_s = 0 if task and task.cancelling() else LINGER_S
            asyncio.get_running_loop().call_later(linger_s, each.transport.abort)
        self.proxy.room += self.taken.total()
        for _, exchange in self.pending:
            exchange.is_over.set()
        for rule in self.proxy.rules:
            if rule.exchange and rule.exchange.connection == self.number:
                rule.given_up.set()
                rule.exchange.is_over.set()

    async def _carry_requests(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        client: asyncio.StreamWriter,
    ) -> None:
        while frame := await self._next_request(reader):
            if self.is_silent:
                continue
            request = parse(frame)
            if self.login and self.login.takes(request):
                await self._log_in(self.login, request, client)
                continue
            exchange = self.proxy.record(self.door, self.number, request)
            rule = await self._apply_rule(exchange, "before")
            if self.is_silent:
                continue
            if rule and rule.fault == "refuse":
                self._note_refusal(request, exchange, rule.error)
            elif self.refused and request.api_key == PRODUCE:
                self._overtake(places(request))
            frame = self._for_broker(request, exchange)
            while len(self.pending) >= MOST_PENDING:
                await asyncio.sleep(CROWDED_S)
            if request.is_answered:
                self.pending.append((request, exchange))
                self.is_done.clear()
            await _send(writer, frame)
        # A request that arrives late is answered although its client is gone.
        if any(exchange.fault for _, exchange in self.pending):
            await self.is_done.wait()

    async def _log_in(self, login: Login, request: Request, client: asyncio.StreamWriter) -> None:
        """Answer a request of a login, behind the answers to what was asked before."""
        while self.pending:
            await self.is_done.wait()
        await _send(client, login.answer_to(request))

    def _for_broker(self, request: Request, exchange: Exchange) -> bytes:
        """Return the frame that the broker gets for a request."""
        # Answers come in the order of requests, so the broker has to answer something here.
        if exchange.refusal or request.is_unknown:
            return stand_in(request)
        timeouts = self.proxy.timeouts.get(self.door)
        return timeouts.passed(request).frame if timeouts else request.frame

    def _note_refusal(self, request: Request, exchange: Exchange, error: ErrorCode) -> None:
        """Note that the broker is not to have a request, and what its client is to get."""
        exchange.refusal = translated(request, error), refusal(request, "before", error)
        if request.api_key == PRODUCE:
            self.refused.append((places(request), exchange))

    def _overtake(self, partitions: set[tuple[TopicKey, int]]) -> None:
        """Note that a produce to these partitions follows those that are refused."""
        for refused, earlier in self.refused:
            if refused & partitions:
                earlier.overtaken.set()

    async def _next_request(self, reader: asyncio.StreamReader) -> bytes:
        """Return the client's next frame.

        It is empty if the client is gone and a request that it sent before is held.
        """
        try:
            return await self._frame(reader, "requests")
        except (OSError, asyncio.IncompleteReadError):
            if not self.is_held:
                raise
            return b""

    async def _frame(self, reader: asyncio.StreamReader, way: Way) -> bytes:
        """Return the next frame without its length.

        It is empty if the other side has closed the connection between two frames.

        Raises:
            NoRequestError: No broker takes a request of this size, or all of them together.
        """
        self.proxy.room += self.taken.pop(way, 0)  # the frame before was sent
        try:
            size = int.from_bytes(await reader.readexactly(LENGTH_BYTES), signed=True)
        except asyncio.IncompleteReadError as error:
            if error.partial:
                raise
            return b""
        is_request = way == "requests"
        if not 0 < size <= (REQUEST_BYTES if is_request else FRAME_BYTES):
            raise (NoRequestError if is_request else UnreadableError)(f"a frame of {size} bytes")
        if size > SMALL_BYTES:
            if size > self.proxy.room:
                raise NoRequestError(f"frames of more than {ROOM_BYTES} bytes at once")
            self.proxy.room -= size
            self.taken[way] = size
        return await reader.readexactly(size)

    async def _carry_answers(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while frame := await self._frame(reader, "answers"):
            request, exchange = self._answered(frame)
            if exchange.refusal:
                await self._refuse(writer, exchange, *exchange.refusal)
                continue
            if request.is_unknown:
                frame = fall_back(frame)
            own = self._read(request, exchange, frame)
            self.proxy.tell(exchange, request, frame)
            rule = await self._apply_rule(exchange, "after")
            if self.is_silent:
                continue
            if rule and rule.fault == "refuse":
                said = translated(request, rule.error)
                answer = refusal(request, "after", rule.error, own)
                await _send_refusal(writer, exchange, said, answer)
                continue
            answer = rewrite(
                request, frame, lambda _, *node: self.proxy.address_of(self.door, node)
            )
            try:
                await _send(writer, answer)
            except OSError:  # the client is gone; a request that is held arrives all the same
                if not self.is_held:
                    raise
            exchange.is_over.set()

    def _answered(self, frame: bytes) -> tuple[Request, Exchange]:
        """Return the request that the broker's next answer is for.

        Raises:
            UnreadableError: It is for none, or for another one.
        """
        if not self.pending:
            raise UnreadableError("an answer to nothing")
        request, exchange = self.pending.popleft()
        if not self.pending:
            self.is_done.set()
        if correlation_id_of(frame) != request.correlation_id:
            raise UnreadableError(
                f"an answer to {correlation_id_of(frame)} where {request.correlation_id} was asked"
            )
        return request, exchange

    async def _refuse(
        self,
        writer: asyncio.StreamWriter,
        exchange: Exchange,
        error: ErrorCode,
        answer: bytes,
    ) -> None:
        """Send the refusal of a request that the broker never had.

        A refused produce waits until a later one to the same partition is in flight, if the client
        sends several at once.
        """
        if self.refused:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(exchange.overtaken.wait(), FOLLOWED_S)
        self.refused.clear()
        await _send_refusal(writer, exchange, error, answer)

    def _read(self, request: Request, exchange: Exchange, frame: bytes) -> Entity | None:
        """Return the broker's answer as a message, or None where no rule or table needs it."""
        exchange.answered_s = time.monotonic()
        rule = self.proxy.due_rule(exchange, "after")
        is_learnt_from = request.api_key in {METADATA, API_VERSIONS}
        if not rule and not exchange.fault and not is_learnt_from:
            return None
        own = decode(request, frame)[1]
        if rule or exchange.fault:
            exchange.error = error_of(own)
        if rule and rule.fault == "refuse" and exchange.error:
            rule.pass_over()
        if request.api_key == METADATA:
            self.proxy.topics |= names(own)
        if request.api_key == API_VERSIONS:
            self.proxy.offers |= offers(own)
        return own

    async def _apply_rule(self, exchange: Exchange, moment: Moment) -> Rule | None:
        """Do what a rule is due to do to an exchange, and return the rule."""
        if not (rule := self.proxy.due_rule(exchange, moment)):
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


async def _first_end(*ways: Coroutine[Any, Any, None]) -> None:
    """Run both ways of a connection until one ends, cancel the other, and raise its error."""
    tasks = [asyncio.create_task(way) for way in ways]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


async def _send(writer: asyncio.StreamWriter, frame: bytes) -> None:
    writer.write(len(frame).to_bytes(LENGTH_BYTES) + frame)
    await writer.drain()


async def _send_refusal(
    writer: asyncio.StreamWriter, exchange: Exchange, error: ErrorCode, answer: bytes
) -> None:
    await _send(writer, answer)
    exchange.told = error
    exchange.is_over.set()
