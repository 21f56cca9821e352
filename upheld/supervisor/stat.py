"""The kernel's table of processes, from /proc/PID/stat.

The files are read without Python's buffers, since a walk reads one for each process of the machine.
"""

import os
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

DEAD: Final = "ZXx"  # states of a process that runs no more
_PROC: Final = "/proc"
_TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")
_BYTES: Final = 4_096  # more than a line has
# The fields that follow the process's name, counted from there.
_STATE: Final = 0
_PARENT: Final = 1
_SESSION: Final = 3
_FLAGS: Final = 6
_TIMES: Final = slice(11, 15)  # in user mode, in the kernel, and the same of waited children
_BORN: Final = 19
_READ: Final = _BORN + 1
_EXITING: Final = 0x4  # PF_EXITING, of the kernel's include/linux/sched.h


class Stat(NamedTuple):
    """One process, or one thread."""

    state: str
    parent: int
    session: int
    born_ticks: int
    with_children_s: float  # the CPU-seconds of it and of the children that it has waited for
    # It still runs in the kernel, and gets no orphans any more.
    is_exiting: bool = False


def stat(path: str) -> Stat | None:
    """Return what a stat file says, or None if its process or thread has gone."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        line = os.read(file, _BYTES)
    except OSError:
        return None
    finally:
        os.close(file)
    # A name may hold brackets and spaces of its own.
    fields = line[line.rfind(b")") + 1 :].split(None, _READ)
    return Stat(
        state=fields[_STATE].decode(),
        parent=int(fields[_PARENT]),
        session=int(fields[_SESSION]),
        born_ticks=int(fields[_BORN]),
        with_children_s=sum(map(int, fields[_TIMES])) * _TICK_S,
        is_exiting=bool(int(fields[_FLAGS]) & _EXITING),
    )


def stats() -> dict[int, Stat]:
    """Return all processes of the machine by process id.

    The walk is no snapshot: a process may be read before its parent, and the parent be gone when it
    is to be read. Such a process is read again, with its new parent.
    """
    table = dict(_stats(name for name in os.listdir(_PROC) if name.isdigit()))
    torn = [pid for pid, row in table.items() if row.parent and row.parent not in table]
    for pid in torn:
        del table[pid]
    table.update(_stats(map(str, torn)))
    return table


def _stats(pids: Iterable[str]) -> Iterator[tuple[int, Stat]]:
    for pid in pids:
        if found := stat(f"{_PROC}/{pid}/stat"):
            yield int(pid), found


def with_descendants(table: dict[int, Stat], pids: set[int]) -> set[int]:
    """Return these processes with all their descendants in a table."""
    children: dict[int, list[int]] = {}
    for pid, row in table.items():
        children.setdefault(row.parent, []).append(pid)
    found = set(pids)
    unvisited = list(pids)
    while unvisited:
        fresh = [pid for pid in children.get(unvisited.pop(), ()) if pid not in found]
        found.update(fresh)
        unvisited += fresh
    return found
