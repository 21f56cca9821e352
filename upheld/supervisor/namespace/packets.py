"""The packets inside of a fence: what they show to be asked for, and not there."""

import socket
import struct
from typing import Final, NamedTuple

TCP: Final = 6
UDP: Final = 17
SYN: Final = 0x02
RST: Final = 0x04
ACK: Final = 0x10
DNS_PORT: Final = 53
DNS_HEADER: Final = 12  # bytes before the first question
IP_HEADER: Final = 20  # bytes at least
TCP_HEADER: Final = 20  # bytes at least
UDP_HEADER: Final = 8
PROTOCOL_AT: Final = 9
REVERSE: Final = ".arpa"
MOST_LABEL: Final = 63


class Answered(NamedTuple):
    """An answer to the first packet of a connection.

    Attributes:
        address: The address HOST:PORT that was asked for.
        is_refused: Whether nothing listens there.
    """

    address: str
    is_refused: bool


class Asked(NamedTuple):
    """A question for the address of a name."""

    name: str


def read(packet: bytes) -> Answered | Asked | None:
    """Return what an IPv4 packet says of the fence; None for every other packet."""
    if len(packet) < IP_HEADER:
        return None
    payload = packet[4 * (packet[0] & 0x0F) :]
    protocol = packet[PROTOCOL_AT]
    if protocol == TCP and len(payload) >= TCP_HEADER:
        return _answer(socket.inet_ntoa(packet[12:16]), payload)
    if protocol == UDP and len(payload) > UDP_HEADER + DNS_HEADER:
        return _asked(payload)
    return None


def _answer(host: str, segment: bytes) -> Answered | None:
    """Return an answer to a SYN; a connection that is reset later has another number."""
    port, _, number = struct.unpack_from(">HHI", segment)
    flags = segment[13] & (SYN | RST | ACK)
    if flags == SYN | ACK:
        return Answered(f"{host}:{port}", is_refused=False)
    if flags == RST | ACK and number == 0:
        return Answered(f"{host}:{port}", is_refused=True)
    return None


def _asked(datagram: bytes) -> Asked | None:
    """Return a question for a name; None for others, such as for the name of an address."""
    _, port = struct.unpack_from(">HH", datagram)
    name = _question(datagram[UDP_HEADER + DNS_HEADER :]) if port == DNS_PORT else ""
    return Asked(name) if name and not name.endswith(REVERSE) else None


def _question(data: bytes) -> str:
    """Return the name of the first question; empty if it is cut."""
    labels = []
    while data and 0 < data[0] <= MOST_LABEL and len(data) > data[0]:
        labels.append(data[1 : 1 + data[0]].decode(errors="replace"))
        data = data[1 + data[0] :]
    return ".".join(labels) if data[:1] == b"\0" else ""
