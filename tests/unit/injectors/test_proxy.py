"""The proxy where no client speaks Kafka.

It lets nothing through that it cannot read, and holds on to no client.
"""

import socket
import struct
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from upheld.injectors.proxy.proxy import Proxy, Trouble
from upheld.injectors.proxy.rules import Rule
from upheld.trial.rig import Rig
from upheld.verdicts import NotOffered

ANSWER_S = 5.0
METADATA = b"\0\3\0\1\0\0\0\7\0\2me\0\0\0\0"  # version 1, correlation id 7, of all topics


@pytest.fixture
def broker() -> Iterator[socket.socket]:
    """Yield a listener in the place of a broker."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(ANSWER_S)
        yield listening


@pytest.fixture
def proxy(broker: socket.socket) -> Iterator[Proxy]:
    """Yield a proxy before the listener, whose thread ends with the test."""
    made = Proxy(f"127.0.0.1:{broker.getsockname()[1]}")
    yield made
    made.close()
    assert "wire" not in {thread.name for thread in threading.enumerate()}


def client(proxy: Proxy) -> socket.socket:
    """Return a connection through a door."""
    host, _, port = proxy.door("a").rpartition(":")
    return socket.create_connection((host, int(port)), ANSWER_S)


def framed(content: bytes) -> bytes:
    """Return the message as it travels."""
    return len(content).to_bytes(4) + content


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",
        b"\xff" * 64,
        framed(b"\0"),
        framed(b"\0\3\x7f\xff\0\0\0\0"),
    ],
)
def test_what_is_no_request_reaches_nobody(
    proxy: Proxy, broker: socket.socket, garbage: bytes
) -> None:
    """Its connection ends, on both sides, and the proxy says what it could not read."""
    with client(proxy) as asking:
        asking.sendall(garbage)
        there, _ = broker.accept()
        with there:
            there.settimeout(ANSWER_S)
            assert there.recv(1) == b""
        assert asking.recv(1) == b""

    failure, breach = proxy.look()
    assert (failure, breach[:18]) == ("", "a client of a sent")
    assert proxy.look() == ("", "")


def test_a_tap_hears_a_request_and_its_answer(proxy: Proxy, broker: socket.socket) -> None:
    """The answer is the broker's own, and the client gets it all the same."""
    answer = b"\0\0\0\7" + bytes(12)
    heard: list[tuple[str, bytes | None]] = []
    proxy.taps.append(lambda exchange, _, frame: heard.append((exchange.api, frame)))
    with client(proxy) as asking:
        asking.sendall(framed(METADATA))
        there, _ = broker.accept()
        with there:
            there.settimeout(ANSWER_S)
            there.recv(100)
            there.sendall(framed(answer))
            assert asking.recv(100) == framed(answer)

    assert heard == [("metadata", None), ("metadata", answer)]
    assert len(proxy.addresses) == 1


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (framed(b"\0\0\0\x08"), "an answer to 8 where 7 was asked"),
        (framed(b"\0\0\0\7\xff"), "MetadataResponse version 1"),
        (framed(b"\0\0\0\7" + bytes(12)) * 2, "an answer to nothing"),
        (b"\xff" * 8, "a frame of -1 bytes"),
    ],
)
def test_what_is_no_answer_reaches_nobody(
    proxy: Proxy, broker: socket.socket, answer: bytes, why: str
) -> None:
    """A client whose answer cannot be read loses the connection."""
    with client(proxy) as asking:
        asking.sendall(framed(METADATA))
        there, _ = broker.accept()
        with there:
            there.settimeout(ANSWER_S)
            assert there.recv(64) == framed(METADATA)
            there.sendall(answer)
            while asking.recv(64):
                pass

    assert why in proxy.look().failure


def test_half_a_request_is_nobody_s_fault(proxy: Proxy, broker: socket.socket) -> None:
    """A client that dies in the middle of a request is gone, and that is all."""
    with client(proxy) as asking:
        asking.sendall(framed(METADATA)[:9])
        there, _ = broker.accept()
    with there:
        there.settimeout(ANSWER_S)
        assert there.recv(1) == b""

    assert proxy.look() == ("", "")


def test_a_broker_that_is_not_there(broker: socket.socket) -> None:
    """The client loses its connection, as it would without a proxy."""
    port = broker.getsockname()[1]
    broker.close()
    proxy = Proxy(f"127.0.0.1:{port}")
    with client(proxy) as asking:
        assert asking.recv(1) == b""
    proxy.close()

    assert proxy.look() == ("", "")


def end_txn(number: int) -> bytes:
    """Return a commit, in the oldest version."""
    return struct.pack(">hhih2sh1sqh?", 26, 0, number, 2, b"me", 1, b"t", 7, 0, True)


def ended(number: int, error: int) -> bytes:
    """Return the answer of a broker to the end of a transaction."""
    return struct.pack(">iih", number, 0, error)


def test_what_is_not_done_is_not_told_to_be_done_and_refused(
    proxy: Proxy, broker: socket.socket
) -> None:
    """The broker's own errors pass until it has done the request.

    The answer that says so is the only one replaced.
    """
    proxy.arm(rule := Rule("a", "end_txn", "refuse", "after", error=ErrorCode.not_coordinator))
    own = [ErrorCode.concurrent_transactions, ErrorCode.none, ErrorCode.none]
    heard = list[bytes]()
    with client(proxy) as asking:
        there = None
        for number, error in enumerate(own):
            asking.sendall(framed(end_txn(number)))
            there = there or broker.accept()[0]
            there.settimeout(ANSWER_S)
            assert there.recv(64) == framed(end_txn(number))
            there.sendall(framed(ended(number, error)))
            heard.append(asking.recv(64))
        assert there
        there.close()

    told = [ErrorCode.concurrent_transactions, ErrorCode.not_coordinator, ErrorCode.none]
    assert heard == [framed(ended(number, error)) for number, error in enumerate(told)]
    assert rule.exchange
    assert (rule.exchange.number, rule.exchange.error, rule.exchange.told) == (
        2,
        0,
        ErrorCode.not_coordinator,
    )


def test_a_secured_connection_is_not_read() -> None:
    """The proxy is not offered on a secured listener, and is on a plain one.

    That makes a row unsupported and says why.
    """
    rig: Any = SimpleNamespace(
        broker=SimpleNamespace(client={"security.protocol": "SASL_SSL"}, bootstrap="b:1"),
        is_secured=True,
    )
    rig.proxy = None

    with pytest.raises(NotOffered, match="what a secured connection carries cannot be read"):
        Rig.open_proxy(rig)
    rig.is_secured = False
    rig.proxy = SimpleNamespace(look=lambda: Trouble("", ""))

    assert Rig.open_proxy(rig) is rig.proxy
