"""The guard of an instance: the parent that no process of its design can leave.

A daemon leaves its session by setsid, its parent by a double fork, and the run's tag by an empty
environment. The kernel gives an orphan to its nearest ancestor that is a subreaper, which is what a
guard is (PR_SET_CHILD_SUBREAPER, prctl(2)). So all processes of an instance are descendants of its
guard. The reaper forks a guard in a millisecond, and is a subreaper too: should a design kill its
guard, its processes become the reaper's own.

A guard is asked over one socket. The harness sends a `Request` with the descriptors of the process,
and hears the process's id, or why it cannot be run. When the process has ended, the guard sends its
status, as wait(2) gives it. A guard ends when none of its descendants is left.
"""

import ctypes
import errno
import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
from dataclasses import asdict, dataclass
from typing import Final

SET_CHILD_SUBREAPER: Final = 36  # of prctl
MOST_DESCRIPTORS: Final = 8
LENGTH: Final = struct.Struct("I")
STARTED: Final = struct.Struct("iii")  # the process's id, the guard's, and an error number
STATUS: Final = struct.Struct("i")
STANDARD: Final = 3  # standard input, output and error come first among the descriptors


@dataclass(frozen=True)
class Request:
    """A process to start, with the numbers of the descriptors that it inherits."""

    command: list[str]
    folder: str
    environment: dict[str, str]
    inherited: list[int]

    def send(self, channel: socket.socket, descriptors: list[int]) -> None:
        """Send the request with the descriptors, the standard ones first."""
        text = json.dumps(asdict(self)).encode()
        socket.send_fds(channel, [LENGTH.pack(len(text))], descriptors)
        channel.sendall(text)


def adopt_orphans() -> None:
    """Make this process the parent of each descendant whose own parent ends."""
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def main(channel: socket.socket) -> None:
    """Run as the guard, in a fork of the reaper, until no descendant is left."""
    # A handler that does nothing is not inherited, as an ignored signal would be.
    for asked_to_end in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(asked_to_end, lambda *_: None)
    os.setsid()
    adopt_orphans()
    process = _started(channel)
    if process is None:
        return
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            return
        if pid == process.pid:
            _send(channel, STATUS.pack(status))


def _started(channel: socket.socket) -> "subprocess.Popen[bytes] | None":
    """Start what is requested, and answer; None if it cannot be run."""
    request, descriptors = _received(channel)
    standard = descriptors[:STANDARD]
    inherited = _at(request.inherited, descriptors[STANDARD:])
    try:
        process = subprocess.Popen(
            request.command,
            cwd=request.folder,
            env=request.environment,
            stdin=standard[0],
            stdout=standard[1],
            stderr=standard[2],
            pass_fds=inherited,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:  # a ValueError is of a NUL, or of an odd variable
        _send(channel, STARTED.pack(0, os.getpid(), getattr(error, "errno", errno.EINVAL)))
        return None
    finally:
        for descriptor in {*descriptors, *inherited}:
            os.close(descriptor)
    _send(channel, STARTED.pack(process.pid, os.getpid(), 0))
    return process


def _received(channel: socket.socket) -> tuple[Request, list[int]]:
    """Receive a request, and its descriptors at numbers that no other one is to have."""
    head, received, _, _ = socket.recv_fds(channel, LENGTH.size, MOST_DESCRIPTORS)
    (left,) = LENGTH.unpack(head)
    pieces = []
    while left:
        piece = channel.recv(left)
        if not piece:
            raise EOFError("the harness ended in the middle of a request")
        pieces.append(piece)
        left -= len(piece)
    request = Request(**json.loads(b"".join(pieces)))
    floor = 1 + max([channel.fileno(), *request.inherited])
    moved = [fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, floor) for number in received]
    for number in received:
        os.close(number)
    return request, moved


def _at(numbers: list[int], descriptors: list[int]) -> list[int]:
    """Duplicate descriptors to the numbers at which the process expects them."""
    return [
        os.dup2(descriptor, number) for descriptor, number in zip(descriptors, numbers, strict=True)
    ]


def _send(channel: socket.socket, text: bytes) -> None:
    """Send an answer; nobody may be there to hear it any more."""
    try:
        channel.sendall(text)
    except OSError:
        channel.close()
