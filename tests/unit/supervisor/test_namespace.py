"""A fence lets its processes reach the broker and declared services alone.

Names of a deployment lead to the broker. Namespaces are made where the machine allows it.
"""

import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from miniatures import until
from namespaces import namespaces

from upheld.errors import UsageProblem
from upheld.protocol.manifest import load
from upheld.supervisor.deployed import Part
from upheld.supervisor.namespace import Namespace, Outside, demand_possible, enter, fenced
from upheld.supervisor.namespace.namespace import Way
from upheld.supervisor.namespace.packets import Answered, Asked, read

EXAMPLE = load(str(Path(__file__).parents[3] / "examples" / "orders"))
ASKS = """
import socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), 5) as client:
        client.sendall(b"me")
        client.shutdown(socket.SHUT_WR)
        print(client.recv(20).decode())
except OSError as error:
    print(type(error).__name__)
"""


def is_possible() -> bool:
    """Return whether this machine lets a fence be made."""
    try:
        demand_possible([asking("namespace")])
    except UsageProblem:
        return False
    return True


def asking(fence: str) -> Any:
    """Return an application that asks for a fence."""
    assert EXAMPLE.application
    subject = EXAMPLE.application.model_copy(update={"fence": fence})
    return EXAMPLE.model_copy(update={"application": subject})


needs_root = pytest.mark.skipif(not is_possible(), reason="no namespace can be made here")


def test_each_name_leads_to_the_broker_by_an_address_of_its_own() -> None:
    """Names have no port in common then; an address of version 4 stays what it is."""
    outside = Outside(
        ("127.0.0.1:1000", "localhost:1000", "127.0.0.1:1001"),
        ("kafka-1.shop:9092", "kafka-2.shop:9092"),
        ("10.0.0.1:6379", "redis:6379"),
    )
    names = outside.names()

    assert names == {
        "localhost": "127.0.0.1",
        "kafka-1.shop": "127.77.0.1",
        "kafka-2.shop": "127.77.0.2",
        "redis": "127.77.0.3",
    }
    broker = ("127.0.0.1", 1000)
    assert outside.ways(names) == [
        Way(broker, broker),
        Way(("127.0.0.1", 1001), ("127.0.0.1", 1001)),
        Way(("127.77.0.1", 9092), broker),
        Way(("127.77.0.2", 9092), broker),
        Way(("10.0.0.1", 6379), ("10.0.0.1", 6379)),
        Way(("127.77.0.3", 6379), ("redis", 6379)),
    ]


def packet(protocol: int, payload: bytes) -> bytes:
    """Return a packet of version 4 from 10.0.0.5."""
    return struct.pack(">B8xB2x4s4x", 0x45, protocol, socket.inet_aton("10.0.0.5")) + payload


def segment(flags: int, number: int) -> bytes:
    """Return a segment from port 5432."""
    return struct.pack(">HHI5xB6x", 5432, 40_000, number, flags)


def question(port: int, *labels: bytes) -> bytes:
    """Return a datagram to a port that asks for a name."""
    name = b"".join(bytes([len(each)]) + each for each in labels)
    return struct.pack(">HH4x12x", 40_000, port) + name + b"\0\0\1\0\1"


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        (packet(6, segment(0x14, 0)), Answered("10.0.0.5:5432", is_refused=True)),
        (packet(6, segment(0x12, 7)), Answered("10.0.0.5:5432", is_refused=False)),
        (packet(6, segment(0x14, 7)), None),
        (packet(6, segment(0x02, 0)), None),
        (packet(6, segment(0x14, 0)[:10]), None),
        (packet(17, question(53, b"redis", b"prod")), Asked("redis.prod")),
        (packet(17, question(53, b"5", b"in-addr", b"arpa")), None),
        (packet(17, question(123, b"redis", b"prod")), None),
        (packet(17, question(53, b"redis", b"prod")[:25]), None),
        (packet(1, bytes(40)), None),
        (b"", None),
    ],
)
def test_a_packet_says_what_was_asked_for(given: bytes, seen: object) -> None:
    """An answer to a SYN, or a question for a name; what is cut says nothing."""
    assert read(given) == seen


@pytest.fixture
def broker() -> Iterator[str]:
    """Return the address of a server that greets."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    client.sendall(b"hello " + client.recv(20))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join(5)


@pytest.fixture
def made(broker: str, tmp_path: Path) -> Iterator[Namespace]:
    """Return a fence around that broker."""
    outside = Outside((broker,), ("kafka.shop.example:9092",), (f"10.9.8.7:{broker[10:]}",))
    namespace = Namespace(outside, tmp_path)
    yield namespace
    namespace.close()


def asked(namespace: Namespace, host: str, port: str | int) -> str:
    """Return what a process inside gets from an address."""
    command = namespace.command([sys.executable, "-c", ASKS, host, str(port)])
    found = subprocess.run(command, capture_output=True, check=True, text=True, timeout=60)
    return found.stdout.strip()


@needs_root
def test_the_broker_is_reached_and_nothing_else(made: Namespace, broker: str) -> None:
    """A name of the deployment leads to it, too; others are refused and noted."""
    port = broker.rpartition(":")[2]

    assert asked(made, "127.0.0.1", port) == "hello me"
    assert asked(made, "kafka.shop.example", 9092) == "hello me"
    assert made.refused == ()
    assert asked(made, "10.0.0.5", 5432) == "ConnectionRefusedError"
    assert asked(made, "redis.prod.invalid", 6379) == "gaierror"
    until(lambda: made.refused == ("10.0.0.5:5432", "redis.prod.invalid"))


@needs_root
def test_the_hosts_file_of_the_machine_stays_as_it_is(made: Namespace) -> None:
    """The names of it are known inside, too."""
    shown = subprocess.run(
        made.command(["cat", "/etc/hosts"]), capture_output=True, check=True, text=True
    )

    assert "127.77.0.1 kafka.shop.example\n" in shown.stdout
    assert shown.stdout.endswith(Path("/etc/hosts").read_text())
    assert "kafka.shop.example" not in Path("/etc/hosts").read_text()


@needs_root
def test_a_process_inside_is_asked_where_it_is(broker: str, tmp_path: Path) -> None:
    """A port at which it does not serve yet is none that it was refused."""
    part = Part("app", ("true",), {}, "", "1")
    (inside,), namespace = fenced([part], Outside((broker,)), tmp_path)
    listening = namespace.within(lambda: socket.create_server(("127.0.0.1", 0)))
    address = listening.getsockname()

    namespace.within(lambda: socket.create_connection(address, 5)).close()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(address, 5)
    with pytest.raises(OSError, match="refused"):
        namespace.within(lambda: socket.create_connection(("127.0.0.1", 1), 5))
    assert inside.command[-1] == "true"
    assert namespace.refused == ()
    listening.close()
    namespace.close()


@needs_root
def test_a_namespace_ends_with_the_last_that_holds_it(broker: str, tmp_path: Path) -> None:
    """No name and no mount is left of it."""
    namespace = Namespace(Outside((broker,)), tmp_path)
    number = Path(namespace.path).stat().st_ino
    with subprocess.Popen(namespace.command(["sleep", "60"])) as inside:
        until(lambda: number in namespaces())
        namespace.close()
        assert number in namespaces()
        inside.kill()

    until(lambda: number not in namespaces())
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()


@needs_root
def test_a_program_that_is_not_there_is_named(made: Namespace) -> None:
    """The exit code is that of a shell."""
    found = subprocess.run(made.command(["no-such-program"]), capture_output=True, check=False)

    assert found.returncode == 126
    assert b"no-such-program cannot be run in the fence: No such file" in found.stderr


def test_no_fence_can_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence names the file, the field and the reason; others are not asked."""

    def refuse(_: int) -> Callable[[], None]:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(enter, "unshare", refuse)
    demand_possible([asking("watched"), EXAMPLE])

    with pytest.raises(UsageProblem) as problem:
        demand_possible([asking("namespace")])
    assert str(problem.value) == (
        f'{EXAMPLE.file}: fence = "namespace" needs root on Linux, and no network namespace can be '
        "made here (Operation not permitted); run it as root, or remove the line."
    )
