"""Standard output and standard error, to which writing never fails.

A reader such as `head` may go, a terminal may be closed, and the disk of a file may be full. The
verdict stays what it is, so a command goes on to its end and to its exit code. The loss is known
afterwards.

All output is text: a control character in it is visible, whoever printed it and wherever the text
came from. A console alone moves the cursor, and guards its own texts.
"""

import errno
import fcntl
import io
import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final, TextIO, cast

from upheld.text import printable

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

CLOSED: Final = "Standard output is closed, so nothing can be said; open it, or name /dev/null."
STANDARD: Final = (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)  # by descriptor: how each is used


@dataclass
class _Fate:
    """The first error of one file, terminal or pipe, to which several outlets may lead."""

    failure: OSError | None = None


class Outlet(io.RawIOBase):
    """A descriptor that takes all that is written to it, and loses it after an error."""

    def __init__(self, descriptor: int) -> None:
        self._fate = _Fate()
        self._descriptor = descriptor
        self._owns = False
        self._is_terminal = os.isatty(descriptor)

    @classmethod
    def apart(cls, file: IO[str]) -> "Outlet":
        """Return an outlet on a descriptor of its own, which leads where the file does.

        Raises:
            OSError, ValueError, AttributeError: The file has no descriptor.
        """
        twin = cls(os.dup(file.fileno()))
        twin._owns = True
        if isinstance(outlet := getattr(file, "outlet", None), cls):
            twin._fate = outlet._fate
        return twin

    @property
    def failure(self) -> OSError | None:
        """The error after which all is lost."""
        return self._fate.failure

    @property
    def is_unread(self) -> bool:
        """Whether the reader of the pipe has gone."""
        return self.failure is not None and self.failure.errno == errno.EPIPE

    @property
    def is_lost(self) -> bool:
        """Whether text is lost, of which no reader has taken leave.

        The end of a pipe's reader and of a terminal are such leaves.
        """
        is_closed = self._is_terminal and self.failure and self.failure.errno == errno.EIO
        return self.failure is not None and not self.is_unread and not is_closed

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Return whether the descriptor is a terminal."""
        return self._is_terminal

    def write(self, text: "ReadableBuffer", /) -> int:
        """Write or lose the text or its beginning; return the bytes done with."""
        while not self.failure:
            try:
                return os.write(self._descriptor, text)
            except BlockingIOError:
                self._wait()
            except OSError as error:
                self._fate.failure = error
        return memoryview(text).nbytes

    def close(self) -> None:
        """Close the outlet, and its descriptor if it owns it."""
        if self._owns and not self.closed:
            os.close(self._descriptor)
        super().close()

    def _wait(self) -> None:
        """Wait until a descriptor that does not block takes more."""
        free = select.poll()
        free.register(self._descriptor, select.POLLOUT)
        free.poll()


class Stream(io.TextIOWrapper):
    """Text to an outlet. Characters that its encoding lacks are written as escapes."""

    def __init__(self, outlet: Outlet, like: IO[str] | None) -> None:
        self.outlet = outlet
        errors = getattr(like, "errors", None) or "strict"
        super().__init__(
            io.BufferedWriter(outlet),
            encoding=getattr(like, "encoding", None) or "utf-8",
            errors="backslashreplace" if errors == "strict" else errors,
            line_buffering=getattr(like, "line_buffering", False),
        )


class Printed(Stream):
    """Text to an outlet, with all control characters but the ends of lines visible."""

    def write(self, text: str, /) -> int:
        """Write a text as it may stand on a terminal; return the number of its characters."""
        super().write(printable(text))
        return len(text)

    @property
    def rich_proxied_file(self) -> IO[str]:
        """The same stream for a console of rich, which looks for it under this name."""
        return cast(IO[str], _Console(self))


class _Console:
    """A stream as its console writes to it: colours and movements of the cursor stay."""

    def __init__(self, stream: Printed) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write what the console has made of a text."""
        return Stream.write(self._stream, text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def lasting() -> Iterator[Callable[[], str | None]]:
    """Let what is printed within the block never fail.

    Streams without a descriptor, such as those of a test, stay as they are.

    Yields:
        A question: the sentence that says why text to standard output is lost, or None.
    """
    is_open = _is_open()
    _fill()
    before = (sys.stdout, sys.stderr)
    sys.stdout = _stream(sys.stdout, 1)
    sys.stderr = _stream(sys.stderr, 2)

    def lost() -> str | None:
        sys.stdout.flush()
        if not is_open:
            return CLOSED
        outlet = getattr(sys.stdout, "outlet", None)
        if not (isinstance(outlet, Outlet) and outlet.failure and outlet.is_lost):
            return None
        return f"Standard output cannot be written ({outlet.failure.strerror})."

    try:
        yield lost
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = before


def _is_open() -> bool:
    """Return whether this process was started with a standard output to write to."""
    try:
        flags = fcntl.fcntl(1, fcntl.F_GETFL)
    except OSError:
        return False
    return (sys.stdout is not None) and flags & os.O_ACCMODE != os.O_RDONLY


def _fill() -> None:
    """Open nothing in the place of each closed stream.

    Or else the next file that is opened would be the standard output of this process.
    """
    for descriptor, flags in enumerate(STANDARD):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, flags)  # the lowest descriptor that is free


def _stream(stream: TextIO | None, descriptor: int) -> TextIO:
    if stream is None:
        return Printed(Outlet(descriptor), sys.__stderr__)
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return stream
    stream.flush()
    return Printed(Outlet(descriptor), stream)
