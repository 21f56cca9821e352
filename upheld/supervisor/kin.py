"""The CPU that a run's containers have taken.

Their processes are the engine's children. If their work was that of others on this machine, it
would excuse a design that is late.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from upheld.supervisor.stat import Stat, with_descendants


class _Root(NamedTuple):
    """The first process of a container; its id may be another one's later."""

    pid: int
    born_ticks: int


class Kin:
    """The known containers, with the CPU-seconds of each when it was seen last."""

    def __init__(self) -> None:
        self._seconds: dict[_Root, float] = {}

    def look(self, table: dict[int, Stat], roots: Iterable[int] = ()) -> float:
        """Return the CPU-seconds of all containers so far, also of those that have ended.

        Args:
            table: All processes of the machine.
            roots: The first processes of containers, which may not be known yet.
        """
        for pid in roots:
            if pid in table:
                self._seconds.setdefault(_Root(pid, table[pid].born_ticks), 0.0)
        for root, known_s in list(self._seconds.items()):
            row = table.get(root.pid)
            if row and row.born_ticks == root.born_ticks:
                self._seconds[root] = max(known_s, _taken_s(table, root.pid))
        return sum(self._seconds.values())


def _taken_s(table: dict[int, Stat], pid: int) -> float:
    """Return the CPU-seconds of a process and its descendants, with those they waited for."""
    return sum(table[each].with_children_s for each in with_descendants(table, {pid}))


KIN: Final = Kin()
