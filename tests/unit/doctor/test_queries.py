"""The answer of an application for a key is compared with its last output."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from upheld.doctor.queries import answer, last_of
from upheld.history.events import Contract, Record
from upheld.supervisor.deployed import Part

CONTRACT = Contract(
    name="orders", reads="orders", writes="costs", format="json", ignore=("$.at",), asked={}
)
HTTP = "http://127.0.0.1:{port}/costs/{key}"


class Costs(BaseHTTPRequestHandler):
    """Answers for alice, and for nobody else."""

    def do_GET(self) -> None:
        """Answer with a cost."""
        self.send_response(200 if self.path == "/costs/alice" else 404)
        self.end_headers()
        self.wfile.write(b'{"cost": 3}')

    def log_request(self, *_: object) -> None:
        """Say nothing of a request."""


@pytest.fixture
def parts() -> Iterator[list[Part]]:
    """Return the process of a service that answers."""
    with HTTPServer(("127.0.0.1", 0), Costs) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield [Part("app", (), {}, "", str(server.server_port))]
        server.shutdown()
        thread.join()


def output(key: bytes | None, value: bytes | None) -> Record:
    """Return a record of an output."""
    return Record("costs", 0, 0, 0, key, value)


@pytest.mark.parametrize(
    ("key", "value", "status", "fits"),
    [
        (b"alice", b'{"cost": 3, "at": 9}', 200, True),
        (b"alice", b'{"cost": 4, "at": 9}', 200, False),
        (b"bob", b'{"cost": 3, "at": 9}', 404, False),
    ],
)
def test_it_is_asked_for_the_key_of_its_last_output(
    parts: list[Part], key: bytes, value: bytes, status: int, fits: bool
) -> None:
    """A field that is not compared may be missing in the answer."""
    found = answer(CONTRACT, HTTP, parts, output(key, value))

    assert (found.status, found.fits) == (status, fits)
    assert found.address == f"http://127.0.0.1:{parts[0].port}/costs/{key.decode()}"
    assert found.last == value.decode()


def test_nobody_answers() -> None:
    """A port at which nothing listens has no status."""
    found = answer(CONTRACT, "http://127.0.0.1:1/{key}", [], output(b"alice", b"{}"))

    assert (found.status, found.fits) == (0, False)


def test_the_last_output_has_a_value_and_a_key_that_is_text() -> None:
    """Nobody can ask for another one."""
    sound = output(b"alice", b"1")

    assert (
        last_of([sound, output(b"bob", None), output(b"\xff", b"2"), output(None, b"3")]) == sound
    )
    assert last_of([]) is None
