"""A raw connection ends where an answer is cut off."""

import socket
import struct
import threading
from collections.abc import Iterator
from typing import Final

import pytest

from upheld.kafka.connection import RawConnection

EMPTY: Final = struct.pack(">iii", 8, 1, 0)  # a frame: its length, a correlation id, no result


@pytest.fixture
def node() -> Iterator[str]:
    """Yield the address of a node that gives each connection one answer of no result."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:  # the test is over
                return
            client.recv(1024)
            client.sendall(EMPTY)

    threading.Thread(target=serve, daemon=True).start()
    yield f"127.0.0.1:{server.getsockname()[1]}"
    server.shutdown(socket.SHUT_RDWR)
    server.close()


def test_an_answer_that_is_cut_off_ends_the_connection(
    node: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After Ctrl-C in the middle, the rest is never read as the next answer."""
    connection = RawConnection(node, {})

    def interrupted(_: int) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(connection, "_receive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            connection.fetch("topic", {0: 0}, 1)

    assert connection.is_closed
    with pytest.raises(OSError, match="Bad file descriptor"):
        connection.fetch("topic", {0: 0}, 1)
