"""A long run inside a test shows its progress."""

import subprocess
import sys
from pathlib import Path

TEST = """
import sys
from pathlib import Path
from watched import watched

def test_it(pytestconfig, tmp_path):
    lines = "'[1/2] upheld it 0.1 s', 'a card', '[2/2] upheld it 0.1 s'"
    code = f"print({lines}, sep=chr(10)); raise SystemExit(7)"
    assert watched([sys.executable, "-c", code], tmp_path / "log", 60, pytestconfig) == 7
    assert "a card" in (tmp_path / "log").read_text()
    endless = [sys.executable, "-c", "while True: pass"]
    assert watched(endless, tmp_path / "log", 0.2, pytestconfig) == -9
"""


def test_the_progress_is_seen_past_capturing_and_the_cards_are_not(tmp_path: Path) -> None:
    """The exit code is the command's, and its whole output is in the log.

    A deadline ends the command.
    """
    (tmp_path / "test_it.py").write_text(TEST)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "test_it.py",
        "--rootdir",
        str(tmp_path),
    ]
    options = ["-c", "/dev/null", "-o", f"pythonpath={Path(__file__).parents[2] / 'support'}"]

    done = subprocess.run(
        [*command, *options], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.splitlines() == ["[1/2] upheld it 0.1 s", "[2/2] upheld it 0.1 s"]
    assert "a card" not in done.stdout
