"""A program on a terminal of its own, for tests of live lines and of Ctrl-C."""

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Self

SHOWS = b"\x1b[?25h"
HIDES = b"\x1b[?25l"
CTRL_C = b"\x03"
ADOPT = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""


@contextlib.contextmanager
def inherited(ignored: signal.Signals | None = None) -> Iterator[None]:
    """Start commands that ignore this signal alone, whatever is inherited."""
    before = {
        number: signal.signal(number, signal.SIG_IGN if number == ignored else signal.SIG_DFL)
        for number in (signal.SIGHUP, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Terminal:
    """A pseudo-terminal, the program on it, and all that the program has written."""

    def __init__(
        self, *command: str, columns: int = 100, cwd: Path | None = None, **environment: str
    ) -> None:
        self.screen = b""
        self._is_open = True
        self._master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (30, columns))
        self._before = termios.tcgetattr(slave)
        plain: Mapping[str, str] = {
            name: value for name, value in os.environ.items() if name not in {"CI", "COLUMNS"}
        }
        with inherited():
            self.process = subprocess.Popen(
                [sys.executable, "-c", ADOPT, *command],
                stdin=slave,
                stdout=slave,
                stderr=slave,
                cwd=cwd,
                env={**plain, "TERM": "xterm", **environment},
                start_new_session=True,
            )
        self._slave = slave

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        if self._is_open:
            os.close(self._slave)
            os.close(self._master)

    def until(self, reached: Callable[[bytes], bool], deadline_s: float = 60.0) -> None:
        """Read what is written, until that is reached."""
        deadline = time.monotonic() + deadline_s
        while not reached(self.screen):
            left_s = deadline - time.monotonic()
            assert left_s > 0, self.screen.decode(errors="replace")
            self._read(min(left_s, 0.1))
            if self.process.poll() is not None:
                self._rest()
                assert reached(self.screen), self.screen.decode(errors="replace")

    def press(self, keys: bytes) -> None:
        """Type on the terminal's keyboard."""
        os.write(self._master, keys)

    def hang_up(self) -> None:
        """Close the terminal, as a lost connection or a closed window does."""
        os.close(self._slave)
        os.close(self._master)
        self._is_open = False

    def end(self, deadline_s: float = 60.0) -> int:
        """Wait for the program's end; its exit code."""
        deadline = time.monotonic() + deadline_s
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.screen.decode(errors="replace")
            self._read(0.1)
        self._rest()
        return self.process.returncode

    def is_as_it_was(self) -> bool:
        """Return whether the cursor is visible, and lines are edited and echoed."""
        shown = self.screen.rfind(SHOWS) > self.screen.rfind(HIDES)
        return shown and termios.tcgetattr(self._slave) == self._before

    def shown(self, columns: int = 100) -> list[str]:
        """Return the lines that are left on the screen: each as it was drawn last."""
        return _drawn(self.screen.decode(errors="replace"), columns)

    def _read(self, wait_s: float) -> bool:
        if not select.select([self._master], [], [], wait_s)[0]:
            return False
        with contextlib.suppress(OSError):
            self.screen += os.read(self._master, 1 << 16)
        return True

    def _rest(self) -> None:
        while self._read(0.05):
            pass


def _drawn(text: str, columns: int) -> list[str]:
    """Draw what is written: text, new lines, and the few controls of a live line."""
    lines = [""]
    row = 0
    at = 0
    while at < len(text):
        if text.startswith("\x1b[", at):
            end = at + 2
            while not text[end].isalpha():
                end += 1
            number = text[at + 2 : end]
            final = text[end]
            if final == "K":
                lines[row] = ""
            elif final == "A":
                row = max(0, row - int(number or 1))
            at = end + 1
            continue
        if text[at] == "\n":
            row += 1
            if row == len(lines):
                lines.append("")
        elif text[at] != "\r":
            lines[row] += text[at]
        at += 1
    assert all(len(line) <= columns or not line.startswith("[") for line in lines)
    return [line for line in lines if line.strip()]
