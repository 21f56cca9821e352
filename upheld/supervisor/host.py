"""What a run takes of the machine, and what others take meanwhile."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

import psutil

LEAST_CORE_S = 1.0  # processes are charged by ticks of 10 ms: what a moment took cannot be told
MEMORY_LOOK_S = 4.0  # a look walks the page tables of every process: 30 ms where Spark runs


def _tree() -> Iterator[psutil.Process]:
    """This process and all that descend from it; a broker in a container is the engine's child, so
    none of these.
    """
    me = psutil.Process()
    yield from (me, *me.children(recursive=True))


def younger(pids: Iterable[int]) -> list[psutil.Process]:
    """Those processes that live; ValueError where one began before this process did, so that no run
    of ours has begun it.
    """
    began, found = psutil.Process().create_time(), list[psutil.Process]()
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            if (process := psutil.Process(pid)).create_time() <= began:
                raise ValueError(pid)
            found.append(process)
    return found


def own_bytes(pids: Iterable[int]) -> int:
    """What these processes have in memory that no other has; one that has ended has nothing."""
    total = 0
    for pid in pids:
        with contextlib.suppress(psutil.Error, OSError):
            total += psutil.Process(pid).memory_full_info().uss
    return total


def _bytes(ask: Callable[[], Any], what: str = "rss") -> int:
    """What a process has in memory; one that ends while it is looked at has nothing."""
    with contextlib.suppress(psutil.Error, OSError):
        return int(getattr(ask(), what))
    return 0


class Memory(threading.Thread):
    """Samples the proportional memory of the whole process tree."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="memory")
        self.peak_mb = 0
        self._most_resident = 0
        self._stop = threading.Event()

    def run(self) -> None:
        """Sample until stopped."""
        while not self._stop.wait(MEMORY_LOOK_S):
            self.look()

    def look(self) -> None:
        """Take a sample, unless less is resident than at an earlier one: then less of it is the
        tree's own, too.

        What is resident is a number that the kernel has; for a share of it, it walks the page
        tables.
        """
        tree = list(_tree())
        resident = sum(_bytes(process.memory_info) for process in tree)
        if resident > self._most_resident:
            self._most_resident = resident
            total = sum(_bytes(process.memory_full_info, "pss") for process in tree)
            self.peak_mb = max(self.peak_mb, total >> 20)

    def stop(self) -> int:
        """Stop sampling; the peak in MiB."""
        self._stop.set()
        return self.peak_mb


class Cores:
    """How much of the machine's cores others took since this was made: a design cannot answer for
    that.
    """

    orphans_s: ClassVar[float] = (
        0.0  # of processes that were killed with their parent: nobody of ours waits for those
    )

    def __init__(self) -> None:
        self._began, self._own = cpu_s(), (time.monotonic(), time.process_time())

    @classmethod
    def bury(cls, pids: Iterable[int]) -> None:
        """Remember what these took; to be called before their parent and they are killed."""
        for pid in pids:
            with contextlib.suppress(psutil.Error):
                cls.orphans_s += sum(psutil.Process(pid).cpu_times()[:4])

    def others(self) -> float:
        """The share of all cores, 0 to 1, that neither was idle nor went to this process and its
        descendants; 0 of a moment.
        """
        (elapsed, busy, ours), (elapsed_then, busy_then, ours_then) = cpu_s(), self._began
        if elapsed - elapsed_then < LEAST_CORE_S:
            return 0.0
        return min(
            1.0, max(0.0, busy - busy_then - max(0.0, ours - ours_then)) / (elapsed - elapsed_then)
        )

    def harness(self) -> float:
        """How many cores this process itself has taken, on average."""
        began_s, own_s = self._own
        return (time.process_time() - own_s) / max(LEAST_CORE_S, time.monotonic() - began_s)


def cpu_s() -> tuple[float, float, float]:
    """CPU-seconds of all cores since boot: in all, not idle, and of this process's tree with what
    it waited for.
    """
    whole, ours = psutil.cpu_times(), Cores.orphans_s
    # Guests are in user too.
    elapsed = sum(whole) - getattr(whole, "guest", 0.0) - getattr(whole, "guest_nice", 0.0)
    for process in _tree():
        with contextlib.suppress(psutil.Error):
            ours += sum(process.cpu_times()[:4])
    return elapsed, elapsed - whole.idle - getattr(whole, "iowait", 0.0), ours
