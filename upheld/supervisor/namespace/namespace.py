"""The making of a network namespace, and what leads out of it."""

import asyncio
import contextlib
import fcntl
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from upheld.commands import bare_python
from upheld.errors import UsageProblem
from upheld.protocol.manifest import Manifest
from upheld.protocol.subject import NAMESPACE
from upheld.supervisor.deployed import Part
from upheld.supervisor.namespace import enter, packets
from upheld.threads import Heard, begun

SIOCGIFFLAGS: Final = 0x8913
SIOCSIFFLAGS: Final = 0x8914
IFF_UP: Final = 0x1
LOOPBACK: Final = b"lo"
ETH_P_IP: Final = 0x0800
NETLINK_ROUTE: Final = 0
CHUNK_BYTES: Final = 1 << 16
METADATA_S: Final = 5.0
CLOSE_S: Final = 5.0
LOOK_S: Final = 0.2
LOCAL: Final = ("127.0.0.1", "localhost")
NAMED: Final = "127.77.0.{}"  # the address of a name inside

Address = tuple[str, int]
Say = Callable[[str], None]
Result = TypeVar("Result")


class Way(NamedTuple):
    """A way out: who connects to the one address inside gets to the other one outside."""

    inside: Address
    outside: Address


class Outside(NamedTuple):
    """The addresses outside that a fence lets through.

    Attributes:
        broker: The addresses at which the broker serves, as it tells its clients.
        hosts: Addresses HOST:PORT of the deployment that lead to the first of them.
        peers: Addresses HOST:PORT of declared services.
        ports: Ports at which the processes inside are asked before they serve.
    """

    broker: Sequence[str]
    hosts: Sequence[str] = ()
    peers: Sequence[str] = ()
    ports: Sequence[str] = ()

    def ways(self, names: Mapping[str, str]) -> list[Way]:
        """Return the ways, each address inside once.

        Args:
            names: The address inside of each name.
        """
        found: dict[Address, Address] = {}
        for leads_to, addresses in (
            (None, self.broker),
            (_split(self.broker[0]), self.hosts),
            (None, self.peers),
        ):
            for address in addresses:
                host, port = _split(address)
                found.setdefault((names.get(host, host), port), leads_to or (host, port))
        return [Way(*each) for each in found.items()]

    def names(self) -> dict[str, str]:
        """Return the address inside of each host that is no address of version 4."""
        hosts = dict.fromkeys(_split(each)[0] for each in (*self.broker, *self.hosts, *self.peers))
        names = [host for host in hosts if host not in LOCAL and not _is_v4(host)]
        return {"localhost": LOCAL[0]} | {
            name: NAMED.format(number) for number, name in enumerate(names, 1)
        }


class Namespace:
    """A network namespace of an instance, which this process holds."""

    def __init__(self, outside: Outside, folder: Path, say: Say = lambda _: None) -> None:
        """Make it, and open the ways out of it.

        Args:
            outside: The addresses that are reachable from inside.
            folder: Where its hosts file is written.
            say: Is told of each address that was asked for and is not reachable, once.

        Raises:
            OSError: The kernel does not allow it.
        """
        names = outside.names()
        self._say = say
        self._refused: dict[str, None] = {}
        self._served = {f"{LOCAL[0]}:{port}" for port in outside.ports}
        self._held = _on_a_thread(_made)
        self.path = f"/proc/{os.getpid()}/fd/{self._held}"
        self.hosts = folder / "hosts"
        self.hosts.write_text(_hosts_file(names))
        self._over = threading.Event()
        self._watcher = Heard(self._watch, self.within(_listening), name="watch of a fence")
        self._watcher.start()
        self._loop = asyncio.new_event_loop()
        self._servers: list[asyncio.Server] = []
        self._thread = Heard(self._loop.run_forever, name="ways out of a fence")
        self._thread.start()
        for way in outside.ways(names):
            listening = self.within(partial(socket.create_server, way.inside, backlog=128))
            asyncio.run_coroutine_threadsafe(self._serve(listening, way), self._loop).result()

    def command(self, command: Sequence[str]) -> tuple[str, ...]:
        """Return the command that runs another one inside."""
        return (*bare_python(enter.__file__), self.path, str(self.hosts), *command)

    def within(self, act: Callable[[], Result]) -> Result:
        """Do something inside, on a thread of its own, and return its result."""

        def entered() -> Result:
            enter.enter(self.path)
            return act()

        return _on_a_thread(entered)

    @property
    def refused(self) -> tuple[str, ...]:
        """Return what was asked for and is not reachable: HOST:PORT, or a name.

        An address that served someone later was only early. A name that a resolver tries with
        other endings is one name.
        """
        found = [each for each in list(self._refused) if each not in self._served]
        return tuple(
            each
            for each in found
            if not any(each.startswith(f"{other}.") for other in found if ":" not in other)
        )

    def close(self) -> None:
        """Close the ways out, and let go of the namespace."""
        self._over.set()
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(CLOSE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_S)
        self._watcher.join(CLOSE_S)
        self._loop.close()
        os.close(self._held)

    async def _serve(self, listening: socket.socket, way: Way) -> None:
        """Begin to carry what comes to an address inside."""
        self._servers.append(
            await asyncio.start_server(partial(_carry, way.outside), sock=listening)
        )

    async def _end(self) -> None:
        """End all connections, and listen no more."""
        for server in self._servers:
            server.close()
        under_way = asyncio.all_tasks() - {asyncio.current_task()}
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)

    def _watch(self, listening: socket.socket) -> None:
        """Note what is asked for, until the namespace is let go of."""
        with listening:
            listening.settimeout(LOOK_S)
            while not self._over.is_set():
                with contextlib.suppress(TimeoutError):
                    self._see(packets.read(listening.recv(CHUNK_BYTES)))

    def _see(self, packet: packets.Answered | packets.Asked | None) -> None:
        match packet:
            case packets.Answered(address, is_refused=True):
                self._note(address)
            case packets.Answered(address):
                self._served.add(address)
            case packets.Asked(name):
                self._note(name)

    def _note(self, asked: str) -> None:
        if asked not in self._refused and asked not in self._served:
            self._refused[asked] = None
            self._say(asked)


def demand_possible(designs: Iterable[Manifest]) -> None:
    """Demand that a fence can be made here, if a design asks for one.

    Raises:
        UsageProblem: It cannot.
    """
    for design in designs:
        if design.application is None or design.application.fence != NAMESPACE:
            continue
        try:
            _on_a_thread(partial(enter.unshare, enter.CLONE_NEWNET | enter.CLONE_NEWNS))
        except (OSError, AttributeError) as error:
            why = getattr(error, "strerror", None) or "this system has none"
            raise UsageProblem(
                f'{design.file}: fence = "{NAMESPACE}" needs root on Linux, and no network '
                f"namespace can be made here ({why}); run it as root, or remove the line."
            ) from None


def advertised(bootstrap: str, client: Mapping[str, str]) -> list[str]:
    """Return the addresses of a broker, and then those that it tells its clients.

    Args:
        bootstrap: Its addresses, as a client is told them.
        client: The security properties of a client.
    """
    admin = AdminClient({**client, "bootstrap.servers": bootstrap})
    told = list[str]()
    with contextlib.suppress(KafkaException):  # it does not answer now: a fault strikes it
        brokers = admin.list_topics(timeout=METADATA_S).brokers.values()
        told += (f"{each.host}:{each.port}" for each in brokers)
    return list(dict.fromkeys([*bootstrap.split(","), *told]))


async def _carry(
    outside: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Carry the bytes of a connection both ways, until both sides have ended."""
    with contextlib.suppress(OSError), contextlib.closing(writer):
        further_reader, further_writer = await asyncio.open_connection(*outside)
        with contextlib.closing(further_writer):
            await asyncio.gather(_pump(reader, further_writer), _pump(further_reader, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Carry the bytes of one way, and its end."""
    while data := await reader.read(CHUNK_BYTES):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


def fenced(
    found: Iterable[Part], outside: Outside, folder: Path, say: Say = lambda _: None
) -> tuple[list[Part], Namespace]:
    """Return the processes of an instance as they run inside, and the namespace."""
    parts = list(found)
    ports = [each.port for each in parts if each.port]
    made = Namespace(outside._replace(ports=ports), folder, say)
    return [each._replace(command=made.command(each.command)) for each in parts], made


def _split(address: str) -> Address:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _is_v4(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ip_address(host).version == 4
    return False


def _hosts_file(names: Mapping[str, str]) -> str:
    """Return a hosts file: names of the fence, and then those of this machine."""
    own = ""
    with contextlib.suppress(OSError):
        own = Path(os.fsdecode(enter.HOSTS)).read_text(errors="replace")
    return "".join(f"{address} {name}\n" for name, address in names.items()) + own


def _on_a_thread(act: Callable[[], Result]) -> Result:
    """Do something on a thread of its own, whose namespaces are nobody else's."""
    return begun(act, "inside of a fence").result()


def _made() -> int:
    """Make a network namespace, and return the descriptor that holds it."""
    enter.unshare(enter.CLONE_NEWNET)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        asked = struct.pack("16sH14x", LOOPBACK, 0)
        (flags,) = struct.unpack_from("16xH", fcntl.ioctl(control, SIOCGIFFLAGS, asked))
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH14x", LOOPBACK, flags | IFF_UP))
    _make_all_local()
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def _make_all_local() -> None:
    """Let every address of version 4 be one of this namespace, so that it is refused at once."""
    table, boot, host, local = 255, 3, 254, 2  # RT_TABLE_LOCAL, RTPROT_BOOT, RT_SCOPE_HOST, …
    route = struct.pack("=BBBBBBBBI", socket.AF_INET, 0, 0, 0, table, boot, host, local, 0)
    route += struct.pack("=HHI", 8, 4, socket.if_nametoindex(LOOPBACK.decode()))  # RTA_OIF
    request_ack_create = 0x1 | 0x4 | 0x400
    new_route = 24
    header = struct.pack("=IHHII", 16 + len(route), new_route, request_ack_create, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_ROUTE) as control:
        control.send(header + route)
        (error,) = struct.unpack_from("=i", control.recv(CHUNK_BYTES), 16)
    if error:
        raise OSError(-error, os.strerror(-error))


def _listening() -> socket.socket:
    """Return a socket that gets each packet of version 4."""
    return socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_IP))
