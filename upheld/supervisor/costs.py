"""The cost of a row: the CPU-seconds that it took, and the design's memory.

CPU is what the kernel has charged to processes, read once a row, when it ends. The design's share
is that of the whole process tree, less the harness's own process and the broker's. It includes a
warm spare that boots meanwhile, a state store of the harness, and the last seconds of a broker that
was killed. A broker in a container, or one that the user runs, is not in the tree.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from upheld.report import Cost
from upheld.supervisor.host import cpu_s

PEAK: Final = "VmHWM:"  # of /proc/PID/status, in KiB


@dataclass(frozen=True)
class Look:
    """CPU-seconds taken up to a moment."""

    harness_s: float
    tree_s: float
    brokers_s: dict[int, float]  # process id -> its own


def look(broker_pids: Iterable[int]) -> Look:
    """Read the clocks of this process, its tree and the broker's nodes."""
    return Look(
        harness_s=sum(psutil.Process().cpu_times()[:2]),
        tree_s=cpu_s().own_s,
        brokers_s={pid: _own_s(pid) for pid in broker_pids},
    )


def cost(before: Look, after: Look) -> Cost:
    """Return the CPU-seconds between two looks."""
    harness_s = after.harness_s - before.harness_s
    broker_s = sum(
        taken_s - before.brokers_s.get(pid, 0.0) for pid, taken_s in after.brokers_s.items()
    )
    design_s = after.tree_s - before.tree_s - harness_s - broker_s
    return Cost(
        harness_cpu_s=round(harness_s, 2),
        broker_cpu_s=round(broker_s, 2) if after.brokers_s else None,
        design_cpu_s=round(max(0.0, design_s), 2),
    )


def peak_bytes(pids: Iterable[int]) -> int:
    """Return the sum of the peaks of living processes' memory, each since it began."""
    total = 0
    for pid in pids:
        with suppress(OSError, ValueError):  # it has ended meanwhile
            status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
            if PEAK in status:
                total += int(status.partition(PEAK)[2].split()[0]) << 10
    return total


def _own_s(pid: int) -> float:
    with suppress(psutil.Error):
        return float(sum(psutil.Process(pid).cpu_times()[:2]))
    return 0.0
