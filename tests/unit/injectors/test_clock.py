"""A scenario sets the wall clock of the processes that are given it.

No other process sees it.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from upheld.injectors.clock import WallClock
from upheld.verdicts import MarkMissed

SHOWS = "import time; print(time.time(), time.monotonic())"
WAITS = """
import ctypes, time
libc = ctypes.CDLL(None)
condition, mutex = ctypes.create_string_buffer(64), ctypes.create_string_buffer(64)
until = time.clock_gettime(time.CLOCK_REALTIME) + 0.2
deadline = (ctypes.c_long * 2)(int(until), int(until % 1 * 1e9))
libc.mtx_init(mutex, 0), libc.cnd_init(condition), libc.mtx_lock(mutex)
began = time.monotonic()
libc.cnd_timedwait(condition, mutex, deadline)
print(time.monotonic() - began)
"""


def told(code: str, clock: WallClock) -> list[float]:
    """Return the output of a process with this clock."""
    command = [sys.executable, "-S", "-c", code]
    said = subprocess.run(
        command, env=os.environ | clock.environment, capture_output=True, timeout=10, check=True
    )
    return [float(number) for number in said.stdout.split()]


@pytest.mark.parametrize("ahead_s", [3600, -7200])
def test_a_jump_moves_the_time_of_day_alone(tmp_path: Path, ahead_s: int) -> None:
    """The time of day jumps, the monotonic clock does not."""
    clock = WallClock(tmp_path / "new")
    clock.jump(ahead_s)

    wall, monotonic = told(SHOWS, clock)

    assert abs(wall - time.time() - ahead_s) < 30
    assert abs(monotonic - time.monotonic()) < 30


@pytest.mark.parametrize("ahead_s", [3600, -3600])
def test_a_wait_lasts_as_long_as_ever(tmp_path: Path, ahead_s: int) -> None:
    """A jump of the clock does not stretch a later wait by C11's name.

    librdkafka's waits are such.
    """
    clock = WallClock(tmp_path)
    clock.jump(ahead_s)

    (seconds,) = told(WAITS, clock)

    assert 0.15 < seconds < 5


def test_the_evidence_is_who_has_it(tmp_path: Path) -> None:
    """A jump that no process of the design can have seen did not happen."""
    clock = WallClock(tmp_path)
    clock.jump(60)

    with subprocess.Popen(
        ["cat"], env=os.environ | clock.environment, stdin=-1, stdout=-1
    ) as having:
        assert having.stdin
        assert having.stdout
        having.stdin.write(b"loaded\n")
        having.stdin.flush()
        having.stdout.readline()
        assert clock.evidence([having.pid, os.getpid()]) == {"ahead_s": 60, "processes": 1}
        having.stdin.close()
    with pytest.raises(MarkMissed, match="no process of the design"):
        clock.evidence([os.getpid(), having.pid])
