"""One seed makes one workload."""

import os
import subprocess
import sys
from pathlib import Path

from workloads import all_workloads

SUPPORT = Path(__file__).parents[2] / "support"


def told(script: str, hash_seed: str) -> str:
    """Return the output of a script in a process of its own."""
    own = os.environ | {"PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", script]
    return subprocess.run(
        command, env=own, capture_output=True, text=True, check=True, timeout=60
    ).stdout.strip()


def test_one_seed_makes_the_same_bytes_in_any_process() -> None:
    """Nothing of the process reaches a workload, not even the order of its sets.

    The same questions have the same answers.
    """
    script = (
        f"import sys; sys.path.insert(0, {str(SUPPORT)!r}); "
        "from workloads import all_workloads; print(*all_workloads())"
    )
    other = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"

    elsewhere = told(script, other)

    assert all_workloads() == elsewhere.split()
