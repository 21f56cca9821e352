"""The proxy before clients and brokers that mean it no good.

It keeps a bounded memory, ends each connection on both sides, and blames the side that did it.
"""

import contextlib
import gc
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from upheld.injectors.proxy import proxy as module
from upheld.injectors.proxy.frames import parse, places, rewrite
from upheld.injectors.proxy.proxy import Proxy, most_connections
from upheld.injectors.proxy.rules import Rule

ANSWER_S = 5.0
METADATA = b"\0\3\0\1\0\0\0\7\0\2me\0\0\0\0"
ANSWERED = b"\0\0\0\7" + bytes(12)  # no brokers, a controller, no topics
VERSIONS = b"\0\x12\0\0\0\0\0\7\xff\xff"  # ApiVersions
PRODUCE = struct.pack(">hhih", 0, 3, 7, -1)  # version 3, correlation id 7, no client id
HUGE = b"\x7f\xff\xff\xff"


class Fake:
    """A broker that reads all that it is sent, and answers as a test says."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.accepted: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                there, _ = self.listening.accept()
                self.accepted.append(there)
                threading.Thread(target=self._serve, args=(there,), daemon=True).start()

    def _serve(self, there: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while there.recv(1 << 16):
                if self.answer:
                    there.sendall(self.answer)
        there.close()

    def close(self) -> None:
        """End the broker and its connections."""
        with contextlib.suppress(OSError):  # it is closed already
            self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        for there in self.accepted:
            there.close()


@pytest.fixture
def broker() -> Iterator[Fake]:
    """Yield a broker that answers every piece of a request with a good answer."""
    made = Fake(framed(ANSWERED))
    yield made
    made.close()


@pytest.fixture
def proxy(broker: Fake) -> Iterator[Proxy]:
    """Yield a proxy that leaves no file, thread or connection behind."""
    before = files()
    made = Proxy(f"127.0.0.1:{broker.listening.getsockname()[1]}")
    yield made
    made.shut("a")
    assert not made._serving
    assert made.room == module.ROOM_BYTES
    made.close()
    broker.close()
    gc.collect()
    assert eventually(lambda: files() <= before)


def files() -> int:
    """Return how many files this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def eventually(holds: Callable[[], bool], within_s: float = ANSWER_S) -> bool:
    """Return whether something holds within a time."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if holds():
            return True
        time.sleep(0.01)
    return False


def framed(content: bytes) -> bytes:
    """Return a message as it travels."""
    return len(content).to_bytes(4) + content


def client(proxy: Proxy) -> socket.socket:
    """Return a connection through a door."""
    host, _, port = proxy.door("a").rpartition(":")
    return socket.create_connection((host, int(port)), ANSWER_S)


def is_ended(asking: socket.socket) -> bool:
    """Return whether the proxy ends a connection, after whatever it still sends."""
    with contextlib.suppress(ConnectionError):
        while asking.recv(1 << 16):
            pass
    return True


def serves(proxy: Proxy) -> bool:
    """Return whether another client is still served."""
    with client(proxy) as asking:
        asking.sendall(framed(METADATA))
        return asking.recv(64) == framed(ANSWERED)


@pytest.mark.parametrize(
    "sent",
    [
        HUGE + b"x",
        b"\x80\0\0\0",
        b"\0\0\0\0",
        b"\xff\xff\xff\xff",
        framed(b"\0\3"),
        framed(b"\x7f\xff\0\0\0\0\0\7\xff\xff"),
        framed(b"\xff\xff\0\0\0\0\0\7\xff\xff"),
        framed(b"\0\3\x80\0\0\0\0\7\xff\xff"),
        framed(b"\0\3\0\1\0\0\0\7\x7f\xff"),  # a client id longer than the frame
        framed(b"\0\3\0\1\0\0\0\7\0\2\xff\xfe\0\0\0\0"),  # a client id that is no text
        framed(b"\0\3\0\x09\0\0\0\7\xff\xff\xff\xff\xff\xff\x0f"),  # 4 billion tagged fields
        framed(b"\0\3\0\x09\0\0\0\7\xff\xff\1\0\xff\xff\xff\xff\x0f"),  # one of 4 GB
        (module.REQUEST_BYTES + 1).to_bytes(4) + b"\0\3",
        random.Random(27).randbytes(4096),
    ],
)
def test_a_client_that_sends_no_request_is_the_one_to_blame(proxy: Proxy, sent: bytes) -> None:
    """Its connection ends as a broker would end it, and others are served."""
    with client(proxy) as asking:
        asking.sendall(sent)
        assert is_ended(asking)

    failure, breach = proxy.look()
    assert (failure, breach[:19]) == ("", "a client of a sent ")
    assert serves(proxy)
    assert proxy.look() == ("", "")


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (b"\0\3\0\x3f\0\0\0\7\xff\xff", "metadata v63, of which the proxy has no schema"),
        (b"\0\xc8\0\0\0\0\0\7\xff\xff", "API 200 v0, of which the proxy has no schema"),
    ],
)
def test_a_request_of_a_newer_kafka_is_the_proxy_s_limit(
    proxy: Proxy, sent: bytes, why: str
) -> None:
    """No design is blamed for it, and the next row is judged as ever."""
    with client(proxy) as asking:
        asking.sendall(framed(sent))
        assert is_ended(asking)

    assert proxy.look() == (f"the wire carries what the proxy cannot read: {why}", "")
    assert proxy.look() == ("", "")


@pytest.mark.parametrize(
    "body",
    [
        b"\xff\xff\xff\xff\0\0\0\1" + HUGE,  # two billion topics
        b"\xff\xff\xff\xff\0\0\0\1\0\0\0\1\0\1t" + HUGE,  # two billion partitions
        b"\xff\xff\xff\xff\0\0\0\1\0\0\0\1\0\1t\0\0\0\1\0\0\0\0" + HUGE,  # records of 2 GB
        b"\xff\xff\xff\xff\0\0\0\1\0\0\0\1\x7f\xff",  # a topic's name of 32 KB
        b"\xff\xff\xff\xff\0\0\0\1\0\x10\0\0" + b"\0" * 64,
        b"",
    ],
)
def test_a_body_that_promises_more_than_it_holds(proxy: Proxy, body: bytes) -> None:
    """It is walked through before kio makes room for it, which would end the process."""
    proxy.arm(Rule("a", "produce", "close", topic="t"))
    with client(proxy) as asking:
        asking.sendall(framed(PRODUCE + body))
        assert is_ended(asking)

    assert "ProduceRequest version 3" in proxy.look().failure
    assert serves(proxy)


def test_a_topic_without_a_name_is_no_failure_of_ours(proxy: Proxy, broker: Fake) -> None:
    """A rule that looks for a topic passes it over."""
    broker.answer = framed(b"\0\0\0\7" + bytes(8))
    proxy.arm(Rule("a", "produce", "close", topic="t"))
    with client(proxy) as asking:
        asking.sendall(framed(PRODUCE + b"\xff\xff\xff\xff\0\0\0\1\0\0\0\1\0\0\0\0\0\0"))
        asking.recv(64)

    assert proxy.look() == ("", "")


@pytest.mark.parametrize(
    "answer",
    [
        b"\0\0\0\7" + HUGE,
        b"\0\0\0\7\0\0\0\1\0\0\0\1" + b"\x7f\xff",
        b"\0\0\0\7\0\0\0\0\0\0\0\0" + HUGE,
        b"\0\0",
    ],
)
def test_an_answer_that_promises_more_than_it_holds(
    proxy: Proxy, broker: Fake, answer: bytes
) -> None:
    """The broker's side is to blame, and not the design."""
    broker.answer = framed(answer)
    with client(proxy) as asking:
        asking.sendall(framed(METADATA))
        assert is_ended(asking)

    failure, breach = proxy.look()
    assert failure.startswith("the wire carries what the proxy cannot read: ")
    assert breach == ""


def test_an_answer_with_nulls_is_read() -> None:
    """kio reads a null where the schema has none."""
    request = parse(METADATA)

    assert rewrite(request, b"\0\0\0\7\0\0\0\0\0\0\0\0" + b"\xff" * 4, lambda *_: ("", 0))
    assert rewrite(parse(VERSIONS), b"\0\0\0\7\0\0" + b"\xff" * 4, lambda *_: ("", 0))
    assert places(parse(PRODUCE + b"\xff\xff" + bytes(10))) == set()


def test_more_brokers_than_there_are(proxy: Proxy, broker: Fake) -> None:
    """Each address of an answer takes a port here, so their number has a limit."""
    count = module.MOST_ADDRESSES + 1
    nodes = b"".join(struct.pack(">ih1sih", n, 1, b"h", 1000 + n, -1) for n in range(count))
    broker.answer = framed(b"\0\0\0\7" + struct.pack(">i", count) + nodes + bytes(8))
    with client(proxy) as asking:
        asking.sendall(framed(METADATA))
        assert is_ended(asking)

    assert "more than 256 brokers" in proxy.look().failure


def test_more_connections_than_there_are_files(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The harness keeps files for itself; connections beyond that end at once."""
    monkeypatch.setattr(proxy, "_most_connections", 8)
    with contextlib.ExitStack() as stack:
        asking = [stack.enter_context(client(proxy)) for _ in range(40)]
        for each in asking[8:]:
            assert is_ended(each)

    assert proxy.look() == ("", "a has more than 8 connections at once")
    assert eventually(lambda: not proxy._serving)
    assert serves(proxy)


def test_connections_leave_files_to_the_harness() -> None:
    """Two files for each of them, and some hundred for the rest."""
    assert 0 < most_connections() <= module.MOST_CONNECTIONS


def test_bytes_that_come_one_by_one(proxy: Proxy) -> None:
    """A slow client holds up no other one, and leaves nothing behind."""
    with client(proxy) as slow:
        for byte in framed(METADATA)[:-1]:
            slow.sendall(bytes([byte]))
        assert serves(proxy)
        slow.sendall(framed(METADATA)[-1:])
        assert slow.recv(64) == framed(ANSWERED)

    assert proxy.look() == ("", "")


def test_a_client_that_closes_its_half(proxy: Proxy) -> None:
    """The connection ends, and nothing waits for an answer that goes nowhere."""
    with client(proxy) as asking:
        asking.sendall(framed(METADATA))
        asking.shutdown(socket.SHUT_WR)
        assert is_ended(asking)

    assert eventually(lambda: not proxy._serving)
    assert proxy.look() == ("", "")


def test_a_client_that_never_reads(proxy: Proxy, broker: Fake) -> None:
    """Its answers wait in a bounded buffer, and go when the door is shut."""
    broker.answer = framed(b"\0\0\0\7" + bytes(1 << 20))
    proxy.door("a")
    before = files()
    with client(proxy) as asking:
        asking.settimeout(0.2)
        with contextlib.suppress(TimeoutError):
            for _ in range(200):
                asking.sendall(framed(b"\0\x0b\0\0\0\0\0\7\xff\xff" + bytes(1000)))
        proxy.shut("a")
        assert eventually(lambda: files() <= before)


def test_frames_that_claim_all_memory(proxy: Proxy) -> None:
    """Room is taken before bytes are read, and given back when the connection ends."""
    proxy.room = room = 1 << 20
    with contextlib.ExitStack() as stack:
        asking = [stack.enter_context(client(proxy)) for _ in range(5)]
        for each in asking:
            each.sendall((300_000).to_bytes(4) + b"\0\3\0\1")
            time.sleep(0.05)
        assert is_ended(asking[3])

    assert "at once" in proxy.look().breach
    assert eventually(lambda: proxy.room == room)
    proxy.room = module.ROOM_BYTES


def test_a_flood_of_requests(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many are kept as a scenario may have; then the flood is the client's breach."""
    monkeypatch.setattr(module, "MOST_EXCHANGES", 1000)
    with client(proxy) as asking:
        with contextlib.suppress(ConnectionError):
            asking.sendall(framed(METADATA) * 5000)
        assert is_ended(asking)

    assert "more than 1000 requests" in proxy.look().breach
    proxy.shut("a")
    assert proxy.exchanges == []


def test_requests_that_no_answer_comes_to(
    proxy: Proxy, broker: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading stops until earlier ones are answered."""
    broker.answer = b""
    monkeypatch.setattr(module, "MOST_PENDING", 10)
    with client(proxy) as asking:
        asking.sendall(framed(METADATA) * 500)
        time.sleep(0.3)

        assert len(proxy.exchanges) == 11


def test_connections_that_come_and_go(proxy: Proxy) -> None:
    """Nothing of them is left."""
    for _ in range(300):
        client(proxy).close()

    assert eventually(lambda: not proxy._serving)
    assert proxy.look() == ("", "")


def test_a_door_that_is_shut_as_a_client_comes(broker: Fake) -> None:
    """A connection that was just accepted ends too."""
    made = Proxy(f"127.0.0.1:{broker.listening.getsockname()[1]}")
    for _ in range(100):
        with client(made) as asking:
            made.shut("a")
            assert is_ended(asking)
    made.close()


def test_records_are_never_unpacked(proxy: Proxy) -> None:
    """A batch that would grow to gigabytes is carried as it is."""
    bomb = b"\x1f\x8b" + bytes(100_000)
    body = b"\xff\xff\xff\xff\0\0\0\1\0\0\0\1\0\1t\0\0\0\1\0\0\0\0" + framed(bomb)
    request = parse(PRODUCE + body)

    assert places(request) == {("t", 0)}
    with client(proxy) as asking:
        asking.sendall(framed(request.frame))
        asking.recv(64)


def test_a_request_that_is_refused_is_bounded_too(proxy: Proxy) -> None:
    """A refusal repeats what was asked, and so reads it."""
    proxy.arm(Rule("a", "produce", "refuse", error=ErrorCode.not_leader_or_follower))
    with client(proxy) as asking:
        asking.sendall(framed(PRODUCE + b"\xff\xff\xff\xff\0\0\0\1" + HUGE))
        assert is_ended(asking)

    assert "ProduceRequest version 3" in proxy.look().failure
