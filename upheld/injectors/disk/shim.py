"""Run a command under a filter that asks about its changes to disks.

`python shim.py SOCKET COMMAND …`: SOCKET is the number of an inherited socket. A seccomp filter has
the kernel stop each thread that is about to rename, remove, sync or close a file. The kernel asks
the holder of the listener, and the listener goes out through the socket. Children inherit the
filter. See seccomp_unotify(2).
"""

import contextlib
import ctypes
import os
import platform
import socket
import struct
import sys
from typing import NamedTuple


class Machine(NamedTuple):
    """A machine's number, that of its seccomp call, and of the calls to ask about."""

    number: int
    seccomp: int
    calls: dict[str, int]


MACHINES = {
    "x86_64": Machine(
        number=0xC000003E,
        seccomp=317,
        calls={
            "rename": 82,
            "renameat": 264,
            "renameat2": 316,
            "unlink": 87,
            "unlinkat": 263,
            "fsync": 74,
            "fdatasync": 75,
            "close": 3,
        },
    ),
    "aarch64": Machine(
        number=0xC00000B7,
        seccomp=277,
        calls={
            "renameat": 38,
            "renameat2": 276,
            "unlinkat": 35,
            "fsync": 82,
            "fdatasync": 83,
            "close": 57,
        },
    ),
}
# Instructions of classic BPF.
LOAD = 0x20
IS_EQUAL = 0x15
RETURN = 0x06
# What a filter returns.
ALLOW = 0x7FFF0000
ASK = 0x7FC00000
# Where seccomp's data has the number of the call, and that of the machine.
CALL_AT = 0
MACHINE_AT = 4
# Arguments of prctl and seccomp.
NO_NEW_PRIVILEGES = 38
SET_FILTER = 1
NEW_LISTENER = 8


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]


def listen() -> int:
    """Filter this thread and its children, and return the listener.

    Raises:
        OSError: The kernel cannot do this.
    """
    machine = MACHINES[platform.machine()]
    calls = machine.calls
    code = [
        (LOAD, 0, 0, MACHINE_AT),
        (IS_EQUAL, 0, len(calls) + 1, machine.number),
        (LOAD, 0, 0, CALL_AT),
    ]
    code += [(IS_EQUAL, len(calls) - at, 0, number) for at, number in enumerate(calls.values())]
    code += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, ASK)]
    packed = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
    libc = ctypes.CDLL(None, use_errno=True)
    program = _Program(len(code), ctypes.addressof(packed))
    libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    listener: int = libc.syscall(machine.seccomp, SET_FILTER, NEW_LISTENER, ctypes.byref(program))
    if listener < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return listener


if __name__ == "__main__":
    # Without a listener nothing is sent.
    with (
        socket.socket(fileno=int(sys.argv[1])) as to,
        contextlib.suppress(OSError, KeyError),
    ):
        listener = listen()
        socket.send_fds(to, [b"."], [listener])
        os.close(listener)
    os.execvp(sys.argv[2], sys.argv[2:])
