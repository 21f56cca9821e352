"""Runs a command whose changes to disks somebody else is asked about: `python watched.py SOCKET
COMMAND …`.

A seccomp filter has the kernel stop each thread that is about to rename, remove, sync or close a
file, and ask whoever holds the listener, which goes out through the inherited socket of that
number. Children inherit the filter. See seccomp_unotify(2).
"""

import contextlib
import ctypes
import os
import platform
import socket
import struct
import sys

CALLS = {  # by machine: the kernel's name for it, the number of seccomp itself, and those of what is asked about
    "x86_64": (
        0xC000003E,
        317,
        {
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
    "aarch64": (
        0xC00000B7,
        277,
        {
            "renameat": 38,
            "renameat2": 276,
            "unlinkat": 35,
            "fsync": 82,
            "fdatasync": 83,
            "close": 57,
        },
    ),
}
LOAD, IS_EQUAL, RETURN = 0x20, 0x15, 0x06  # of classic BPF
ALLOW, ASK = 0x7FFF0000, 0x7FC00000
NO_NEW_PRIVILEGES, SET_FILTER, NEW_LISTENER = 38, 1, 8


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]


def listen() -> int:
    """Have this thread and all that come of it asked about; return the listener.

    OSError where the kernel does not do it.
    """
    machine, seccomp, calls = CALLS[platform.machine()]
    code = [(LOAD, 0, 0, 4), (IS_EQUAL, 0, len(calls) + 1, machine), (LOAD, 0, 0, 0)]
    code += [(IS_EQUAL, len(calls) - at, 0, number) for at, number in enumerate(calls.values())]
    code += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, ASK)]
    packed = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
    libc, program = ctypes.CDLL(None, use_errno=True), _Program(len(code), ctypes.addressof(packed))
    libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    listener: int = libc.syscall(seccomp, SET_FILTER, NEW_LISTENER, ctypes.byref(program))
    if listener < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return listener


if __name__ == "__main__":
    # Then it sends nothing.
    with (
        socket.socket(fileno=int(sys.argv[1])) as to,
        contextlib.suppress(OSError, KeyError),
    ):
        listener = listen()
        socket.send_fds(to, [b"."], [listener])
        os.close(listener)
    os.execvp(sys.argv[2], sys.argv[2:])
