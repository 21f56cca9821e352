"""The addresses that the processes of an application are connected to."""

import contextlib
import socket
from collections.abc import Iterable, Sequence
from typing import Any

import psutil

Address = tuple[str, int]


def resolved(peers: Iterable[str]) -> set[Address]:
    """Return the addresses of declared peers, each HOST:PORT; a name may have several."""
    found: set[Address] = set()
    for peer in peers:
        host, _, port = peer.rpartition(":")
        with contextlib.suppress(OSError):
            for *_, address in socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM):
                found.add((str(address[0]), int(address[1])))
    return found


def outside(pids: Sequence[int], inside: set[Address]) -> set[Address]:
    """Return the remote addresses of processes that are not inside of a fence.

    Connections among the processes themselves, and those that others opened to them, are left out.
    """
    connections = [each for pid in pids for each in _connections(pid)]
    own = {_plain(each.laddr) for each in connections if each.laddr}
    served = {each.laddr.port for each in connections if each.status == psutil.CONN_LISTEN}
    remote = {
        _plain(each.raddr) for each in connections if each.raddr and each.laddr.port not in served
    }
    return remote - own - inside


def _connections(pid: int) -> list[Any]:
    with contextlib.suppress(psutil.Error, OSError):  # it has ended meanwhile
        return list(psutil.Process(pid).net_connections("tcp"))
    return []


def _plain(address: Any) -> Address:
    """Return an address; one of version 4 that is written as version 6 becomes itself."""
    return address.ip.removeprefix("::ffff:"), address.port
