"""The log of a design: its standard error, masked and bounded.

The design writes into a pipe, and a thread of the harness writes on to the file. So no secret ever
is in the file, also if the run is killed; and the file stays small whatever is written. The thread
rests between two looks. So a design that writes line by line costs a few looks a second, and a
silent one costs none.

A log of more than `MOST_BYTES` loses its middle. The file always is in order: its beginning, a line
that says how much was left out, and its end.
"""

import array
import contextlib
import fcntl
import os
import select
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from upheld.masking import KNOWN, MASK, private
from upheld.threads import Heard

MOST_BYTES: Final = 64 << 20
HEAD_BYTES: Final = 32 << 20  # that are always kept
TAIL_BYTES: Final = 8 << 20  # that are kept at least; each cut leaves so many
LAST_BYTES: Final = 1 << 15  # that are at hand: a stack trace of Java and what came after it
_PIPE_BYTES: Final = 1 << 18  # a design that writes less between two looks is never held up
_CHUNK_BYTES: Final = 1 << 18
_REST_S: Final = 0.03
_LOOK_S: Final = 0.001
_DRAIN_S: Final = 2.0  # at most, to read what was written before an end
_NOTE: Final = b"\n--- upheld left out %d bytes here ---\n"


class Log:
    """One log file and the pipe to it, from its first byte to the end of the instance."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = open(path, "w+b", buffering=0, opener=private)  # noqa: SIM115 - kept open
        self._size = 0
        self._left_out = 0
        self._tail_at = 0  # where the end begins; 0 while nothing is left out
        self._held = b""  # the beginning of a secret, perhaps
        self._last = b""
        self._is_closed = False
        self._source, self._sink = os.pipe()
        self._wake, self._waker = os.pipe()
        self._lock = threading.Lock()
        self._hurry = threading.Event()
        self._reader = Heard(self._read, name=f"log {path.name}")

    @contextlib.contextmanager
    def opened(self) -> Iterator[int]:
        """Yield the descriptor that a process is started with as its standard error."""
        with contextlib.suppress(OSError):  # the user has too many large pipes already
            fcntl.fcntl(self._source, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        os.set_blocking(self._source, False)
        self._reader.start()
        try:
            yield self._sink
        finally:
            os.close(self._sink)

    def catch_up(self) -> None:
        """Return when the file holds all that was written until now.

        A process that was left over and goes on writing is not waited for.
        """
        until = time.monotonic() + _DRAIN_S
        self._hurry.set()
        while time.monotonic() < until:
            with self._lock:
                if self._is_closed or not self._is_pending():
                    break
            time.sleep(_LOOK_S)
        self._hurry.clear()

    def close(self) -> None:
        """Write what is left in the pipe, and end the log; a second call does nothing."""
        self.catch_up()
        with self._lock:
            if not self._is_closed:
                os.write(self._waker, b"x")
        self._reader.join(_DRAIN_S)

    @property
    def size(self) -> int:
        """The bytes that were written to the file so far."""
        return self._size

    def last_line(self) -> bytes:
        """Return the last line, which mostly says why a process died; empty if none."""
        lines = [line for line in self._last.splitlines() if line.strip()]
        return lines[-1].strip() if lines else b""

    def last_lines(self) -> list[str]:
        """Return the last lines that were written until now, in `LAST_BYTES`."""
        self.catch_up()
        return self._last.decode(errors="replace").splitlines()

    # --- on a thread of its own

    def _read(self) -> None:
        """Write on what comes, until the last process has closed the pipe or the log is closed."""
        ready = select.poll()
        ready.register(self._source, select.POLLIN)
        ready.register(self._wake, select.POLLIN)
        try:
            while self._wake not in (seen := dict(ready.poll())):
                with self._lock:
                    count = self._take()
                if seen[self._source] and not count:
                    break
                if count < _CHUNK_BYTES:
                    self._hurry.wait(_REST_S)
        finally:
            with self._lock:
                self._end()

    def _take(self) -> int:
        """Read a piece and write it; return how many bytes were read."""
        piece = os.read(self._source, _CHUNK_BYTES)
        self._keep(piece)
        return len(piece)

    def _is_pending(self) -> bool:
        """Return whether there is something to read."""
        count = array.array("i", [0])
        with contextlib.suppress(OSError):
            fcntl.ioctl(self._source, termios.FIONREAD, count)
        return count[0] > 0

    def _keep(self, piece: bytes) -> None:
        """Write a piece, but for the beginning of a secret that the next one may end."""
        text = KNOWN.masked_bytes(self._held + piece)
        begun = KNOWN.begun(text)
        self._held = text[len(text) - begun :]
        self._write(text[: len(text) - begun])

    def _write(self, text: bytes) -> None:
        self._last = (self._last + text[-LAST_BYTES:])[-LAST_BYTES:]
        with contextlib.suppress(OSError):  # a full disk: the pipe is emptied all the same
            if self._size + len(text) > MOST_BYTES:
                self._cut()
            written = os.write(self._file.fileno(), text)
            self._size += written

    def _cut(self) -> None:
        """Leave out the middle, between the head and the last bytes."""
        begin = self._tail_at or HEAD_BYTES
        kept = os.pread(self._file.fileno(), TAIL_BYTES, self._size - TAIL_BYTES)
        self._left_out += self._size - TAIL_BYTES - begin
        text = _NOTE % self._left_out + kept
        os.ftruncate(self._file.fileno(), HEAD_BYTES)
        os.lseek(self._file.fileno(), HEAD_BYTES, os.SEEK_SET)
        self._size = HEAD_BYTES + os.write(self._file.fileno(), text)
        self._tail_at = HEAD_BYTES + len(text) - len(kept)

    def _end(self) -> None:
        """Write the last bytes, and close the file and the pipe."""
        with contextlib.suppress(OSError):
            if self._is_pending():  # once: a process that was left over may never end
                self._take()
        if self._held:  # half a secret is one
            self._write(MASK.encode() if len(self._held) > 1 else self._held)
            self._held = b""
        self._is_closed = True
        self._file.close()
        for descriptor in (self._source, self._wake, self._waker):
            os.close(descriptor)
