"""The memory and the cores that a run takes, and those that others take meanwhile."""

import contextlib
import os
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import psutil

from upheld.supervisor.kin import KIN
from upheld.supervisor.stat import stats, with_descendants

LEAST_CORE_S: Final = 1.0  # processes are charged by ticks of 10 ms: a moment cannot be measured
CORES_LOOK_S: Final = 2.0
MEMORY_LOOK_S: Final = 4.0  # a look walks the page tables of every process: 30 ms where Spark runs


class CpuTimes(NamedTuple):
    """CPU-seconds of all cores since boot.

    `busy_s` is the part that is not idle. `own_s` is that of this process's tree, with what it
    waited for.
    """

    elapsed_s: float
    busy_s: float
    own_s: float


def _tree() -> Iterator[psutil.Process]:
    """Yield this process and all its descendants.

    A broker in a container is the engine's child, so it is none of them.
    """
    me = psutil.Process()
    yield from (me, *me.children(recursive=True))


def own_bytes(pids: Iterable[int]) -> int:
    """Return the bytes that these processes share with no other; 0 if they have ended.

    Of a process whose share may not be read, all that is resident counts.
    """
    total = 0
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
            process = psutil.Process(pid)
            try:
                total += process.memory_full_info().uss
            except (psutil.AccessDenied, OSError):
                total += _resident_bytes(process)
    return total


def _resident_bytes(process: psutil.Process) -> int:
    """Return a process's resident memory; 0 if the process ends meanwhile."""
    with contextlib.suppress(psutil.Error, OSError):
        return int(process.memory_info().rss)
    return 0


def _proportional_bytes(process: psutil.Process) -> int:
    """Return a process's proportional share of memory; 0 if the process ends meanwhile.

    If the share may not be read, all that is resident counts: no memory is left out.
    """
    with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
        try:
            return int(process.memory_full_info().pss)
        except (psutil.AccessDenied, OSError):
            return _resident_bytes(process)
    return 0


def _with_children_s(process: psutil.Process) -> float:
    """Return the CPU-seconds of a process and of the children that it has waited for."""
    return float(sum(process.cpu_times()[:4]))


class Memory(threading.Thread):
    """Samples the proportional memory of the whole process tree."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="memory")
        self.peak_mb = 0
        self._most_resident = 0
        self._over = threading.Event()

    def run(self) -> None:
        """Sample until stopped, and at least once."""
        self.look()
        while not self._over.wait(MEMORY_LOOK_S):
            self.look()

    def look(self) -> None:
        """Take a sample, unless less memory is resident than at an earlier one.

        Then less of it is the tree's own, too. The kernel knows the resident memory as a number. To
        tell a share of it, the kernel walks the page tables.
        """
        try:
            tree = list(_tree())
        except psutil.Error:  # a process ended while its children were looked for
            return
        resident = sum(map(_resident_bytes, tree))
        if resident > self._most_resident:
            self._most_resident = resident
            total = sum(map(_proportional_bytes, tree))
            self.peak_mb = max(self.peak_mb, total >> 20)

    def stop(self) -> int:
        """Stop sampling, and return the peak in MiB; 0 if nothing could be measured."""
        self._over.set()
        if self.is_alive():
            self.join()
            self.look()
        return self.peak_mb


class Cores:
    """The machine's cores since this object was made, and who used them.

    A design is not responsible for what other processes took.
    """

    def __init__(self, began: CpuTimes | None = None) -> None:
        self._began = began or cpu_s()
        self._began_s = time.monotonic()
        self._own_s = time.process_time()

    def others(self, now: CpuTimes) -> float:
        """Return the share of all cores, 0 to 1, that other processes took until now.

        It was neither idle nor went to this process and its descendants. It is 0 for a time too
        short to measure.
        """
        then = self._began
        elapsed_s = now.elapsed_s - then.elapsed_s
        if elapsed_s < LEAST_CORE_S:
            return 0.0
        own_s = max(0.0, now.own_s - then.own_s)
        others_s = max(0.0, now.busy_s - then.busy_s - own_s)
        return min(1.0, others_s / elapsed_s)

    def harness(self) -> float:
        """Return how many cores this process itself has taken, on average."""
        elapsed_s = max(LEAST_CORE_S, time.monotonic() - self._began_s)
        return (time.process_time() - self._own_s) / elapsed_s


def is_left_by_others(most: float, within_s: float) -> bool:
    """Return whether others take at most that share of the cores, for a while.

    Args:
        most: The share of all cores, 0 to 1.
        within_s: How long is waited for it.
    """
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        cores = Cores()
        time.sleep(CORES_LOOK_S)
        if cores.others(cpu_s()) <= most:
            return True
    return False


def cpu_s() -> CpuTimes:
    """Return the CPU-seconds of all cores since boot, and of this process's tree.

    Orphans of designs are in the tree: their guards wait for them. The containers of instances
    count as if they were.
    """
    whole = psutil.cpu_times()
    # The time of guests is in that of users too.
    elapsed_s = sum(whole) - getattr(whole, "guest", 0.0) - getattr(whole, "guest_nice", 0.0)
    table = stats()
    own_s = sum(
        table[pid].with_children_s for pid in with_descendants(table, {os.getpid()}) if pid in table
    )
    own_s += KIN.look(table)
    idle_s = whole.idle + getattr(whole, "iowait", 0.0)
    return CpuTimes(elapsed_s, elapsed_s - idle_s, own_s)
