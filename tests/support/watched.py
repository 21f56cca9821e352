"""A long run inside a test that shows its progress.

The user sees the lines that say how far it is, and no card of a row that is meant to fail.
"""

import subprocess
import sys
import threading
from pathlib import Path

import pytest


def watched(command: list[str], log: Path, deadline_s: float, config: pytest.Config) -> int:
    """Run the command, and print its `[12/98]` lines past pytest's capturing.

    All output goes to the log. The command is killed at the deadline.

    Returns:
        The exit code of the command.
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
