"""A long run inside a test, of which a person sees the lines that say how far it is, and no card of
what is meant to fail.
"""

import subprocess
import sys
import threading
from pathlib import Path

import pytest


def watched(command: list[str], log: Path, deadline_s: float, config: pytest.Config) -> int:
    """Run the command, and print its `[12/98]` lines past pytest's capturing; all it says goes to
    the log.

    Returns its exit code. It is killed at the deadline.
    """
    capture = config.pluginmanager.getplugin("capturemanager")
    assert capture
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert process.stdout
        killing = threading.Timer(deadline_s, process.kill)
        killing.start()
        try:
            for line in process.stdout:
                file.write(line)
                if line.startswith("["):
                    with capture.global_and_fixture_disabled():
                        print(line, end="", file=sys.stderr, flush=True)
            return process.wait()
        finally:
            killing.cancel()
            process.kill()
