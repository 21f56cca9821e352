"""The fence tells the addresses of others from those that are right."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from upheld.doctor.fence import outside, resolved

CONNECTS = "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))"

SERVES = (
    "import socket; s = socket.create_server(('127.0.0.1', 0)); "
    "print(s.getsockname()[1], flush=True); c = s.accept(); print('met', flush=True); input()"
)


@pytest.fixture
def server() -> Iterator[socket.socket]:
    """Yield a server on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


@pytest.fixture
def process(server: socket.socket) -> Iterator[int]:
    """Yield a process that is connected to the server."""
    port = str(server.getsockname()[1])
    command = [sys.executable, "-c", f"{CONNECTS}; input()", port]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as started:
        with server.accept()[0]:
            yield started.pid
        started.kill()


def test_a_connection_to_another_address_is_outside(process: int, server: socket.socket) -> None:
    """If the address is declared or the broker's, it is inside."""
    address = server.getsockname()

    assert outside([process], set()) == {address}
    assert outside([process], {address}) == set()


@pytest.fixture
def pair() -> Iterator[tuple[int, int]]:
    """Yield a process that serves, and one that is connected to it."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as serves:
        assert serves.stdout
        command = [sys.executable, "-c", f"{CONNECTS}; input()", serves.stdout.readline()]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as connects:
            serves.stdout.readline()
            yield serves.pid, connects.pid
            connects.kill()
        serves.kill()


def test_processes_of_one_application_may_talk(pair: tuple[int, int]) -> None:
    """A worker and its gateway are such processes."""
    assert outside(pair, set()) == set()


def test_a_connection_that_others_opened_is_theirs(pair: tuple[int, int]) -> None:
    """A probe of health comes from outside, and asks."""
    serves, _ = pair

    assert outside([serves], set()) == set()


def test_a_process_that_has_ended_has_no_connection() -> None:
    """It may end while the doctor looks."""
    assert outside([2**22 - 1], set()) == set()


def test_a_declared_name_has_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that nobody knows has none, and is no error."""
    asked = socket.getaddrinfo

    def answer(host: str, *others: Any, **named: Any) -> Any:
        if host == "unknown":
            raise socket.gaierror
        return asked(host, *others, **named)

    monkeypatch.setattr(socket, "getaddrinfo", answer)

    assert resolved(["127.0.0.1:80", "unknown:1"]) == {("127.0.0.1", 80)}
