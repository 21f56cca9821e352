"""A wall clock that can be set, for the processes of one instance.

libfaketime stands between the processes and the system's time. The monotonic clock is left alone,
as it is when a machine's clock is set. A jump is seen within two seconds. libfaketime wraps
pthread_cond_timedwait, whose deadlines are times of day. It does not wrap that call's C11 name, by
which librdkafka waits. After a jump of an hour each of its waits would last an hour. So the copy
that is loaded here has that name as well.
"""

import os
import subprocess
import time
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Final

from upheld import commands, extras
from upheld.verdicts import MachineLacks, MarkMissed

PROBE_S: Final = 10.0
CLOSE_S: Final = 60  # a probe's clock may be this far from the one set: a probe takes time to start


class WallClock:
    """The clock of the instances that are started with its `environment`.

    Raises:
        MachineLacks: What it is made with is not installed.
    """

    def __init__(self, folder: Path) -> None:
        if lack := extras.lack("clock"):
            raise MachineLacks(lack)
        import lief

        # Else it warns at every exit that its own functions are still in use.
        lief.disable_leak_warning()
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "wall-clock"
        self._ahead_s = 0
        self._library = folder / "libfaketime.so"
        library = lief.ELF.parse(
            str(files("libfaketime") / "vendor/libfaketime/src/libfaketime.so.1")
        )
        assert library
        waits = [
            symbol for symbol in library.exported_symbols if symbol.name == "pthread_cond_timedwait"
        ][-1]
        library.add_exported_function(waits.value, "cnd_timedwait")
        library.write(str(self._library))
        self._set()

    @property
    def environment(self) -> dict[str, str]:
        """Variables for the processes that are to have this clock."""
        loaded = " ".join(filter(None, [os.environ.get("LD_PRELOAD"), str(self._library)]))
        return {
            "LD_PRELOAD": loaded,
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",
            "DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",  # with it every monotonic wait of a JVM goes wrong
        }

    def jump(self, seconds: int) -> None:
        """Move the clock forward, or back, by a number of seconds."""
        self._ahead_s += seconds
        self._set()

    def evidence(self, pids: Iterable[int]) -> dict[str, int]:
        """Return how many seconds a process with this clock is ahead of the system's time.

        It also returns how many of the named processes have the clock.

        Raises:
            MarkMissed: None of them has it.
            MachineLacks: This machine cannot load it at all.
        """
        code = "import time; print(time.time())"
        probe = commands.bare_python("-c", code)
        shown = subprocess.run(
            probe,
            env=os.environ | self.environment,
            capture_output=True,
            timeout=PROBE_S,
            check=False,
        )
        ahead_s = round(float(shown.stdout or 0) - time.time())
        if abs(ahead_s - self._ahead_s) > CLOSE_S:
            raise MachineLacks(
                "libfaketime cannot be loaded on this machine, so no wall clock can be set"
            )
        having = [pid for pid in pids if "libfaketime" in _maps(pid)]
        if not having:
            raise MarkMissed("no process of the design has the wall clock that was set")
        return {"ahead_s": ahead_s, "processes": len(having)}

    def _set(self) -> None:
        partial = self._file.with_suffix(".partial")
        partial.write_text(f"{self._ahead_s:+d}s\n")
        partial.replace(self._file)


def _maps(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return ""
