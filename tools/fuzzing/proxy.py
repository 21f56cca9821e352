"""Feed the proxy with bytes that a hostile client or broker might send.

`proxy` reads frames in this process, and is quick. `wire` sends the same bytes through a real door,
before a broker that answers with them, and looks for what is left behind.
"""

import contextlib
import socket
import threading
from typing import Final

from kio.schema.index import api_key_map, schema_name_map

from upheld.injectors.proxy.errors import GIVEN, is_given, refusal
from upheld.injectors.proxy.frames import (
    METADATA,
    Request,
    UnreadableError,
    correlation_id_of,
    decode,
    error_of,
    names,
    parse,
    places,
    rewrite,
)
from upheld.injectors.proxy.proxy import Proxy
from upheld.injectors.proxy.rules import PLACED

KNOWN: Final = [
    (key, version) for key, name in api_key_map.items() for version in schema_name_map[name]
]
CHOICE_BYTES: Final = 2
ANSWER_S: Final = 5.0


def proxy(data: bytes) -> None:
    """Read bytes as a request and as an answer, with all that the proxy does.

    The first two bytes choose an API and a version that are known, so that bodies are reached. Any
    error but UnreadableError is a fault.
    """
    with contextlib.suppress(UnreadableError):
        _take(parse(data))
    if len(data) < CHOICE_BYTES:
        return
    api_key, version = KNOWN[int.from_bytes(data[:CHOICE_BYTES]) % len(KNOWN)]
    rest = data[CHOICE_BYTES:]
    chosen = api_key.to_bytes(2) + version.to_bytes(2)
    with contextlib.suppress(UnreadableError):
        _take(parse(chosen + rest))
    asked = Request(api_key, version, 7, None, b"", 0)
    with contextlib.suppress(UnreadableError):
        correlation_id_of(rest)
        answer = decode(asked, rest)[1]
        error_of(answer)
        if api_key == METADATA:
            names(answer)
    with contextlib.suppress(UnreadableError):
        rewrite(asked, rest, lambda *_: ("127.0.0.1", 1))


def _take(request: Request) -> None:
    """Ask a request all that rules and faults ask it."""
    assert isinstance(request.is_answered, bool)
    if request.api in PLACED:
        places(request)
    for moment, errors in GIVEN.get(request.api, {}).items():
        for error in errors:
            if is_given(request, moment, error):
                refusal(request, moment, error)


def wire(data: bytes) -> None:
    """Send bytes through a door to a broker that sends them back.

    Raises:
        AssertionError: The proxy failed, hangs, or keeps a connection.
    """
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(ANSWER_S)
        made = Proxy(f"127.0.0.1:{listening.getsockname()[1]}")
        answering = threading.Thread(target=_answer, args=(listening, data), daemon=True)
        answering.start()
        try:
            host, _, port = made.door("fuzz").rpartition(":")
            with (
                contextlib.suppress(ConnectionError),
                socket.create_connection((host, int(port)), ANSWER_S) as asking,
            ):
                asking.sendall(data)
                with contextlib.suppress(OSError):  # the proxy has ended it already
                    asking.shutdown(socket.SHUT_WR)
                while asking.recv(1 << 16):
                    pass
            answering.join(ANSWER_S)
            made.shut("fuzz")
            found = made.look()
            assert not found.failure.startswith("the proxy failed"), found.failure
            assert not answering.is_alive(), "the connection to the broker stays"
        finally:
            made.close()


def _answer(listening: socket.socket, data: bytes) -> None:
    """Answer one connection with these bytes, and read what it sends until its end."""
    with contextlib.suppress(OSError):
        there, _ = listening.accept()
        with there:
            there.settimeout(ANSWER_S)
            there.sendall(data)
            while there.recv(1 << 16):
                pass
