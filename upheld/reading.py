"""Files and texts that a user, a design or an earlier run wrote.

Every reader of such a text begins here. Nothing that stands in one can harm the harness. A file is
read up to a limit of bytes, and a pipe up to a limit of seconds. Nesting has a limit of levels. A
file that cannot be read is refused in one sentence, which names it.
"""

import gzip
import io
import json
import os
import re
import select
import stat
import time
import tomllib
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from pydantic_core import from_json

from upheld.errors import UsageProblem

MOST_BYTES: Final = 256 << 20  # of a file that a run wrote
MOST_BYTES_BY_HAND: Final = 1 << 20  # of a file that a person wrote
MOST_LEVELS: Final = 200  # of lists and tables in one another; `from_json` has the same limit
MOST_PARTS: Final = 100  # of a dotted key
SILENCE_S: Final = 5.0  # for which a pipe may say nothing
_CHUNK_BYTES: Final = 1 << 20
_GZIP: Final = b"\x1f\x8b"  # what a file that is compressed begins with
_KEY_PART: Final = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
# The time that tomllib takes for a key grows with the square of its parts.
_LONG_KEY: Final = re.compile(
    rf"(?<![\w-]){_KEY_PART}(?:[ \t]*+\.[ \t]*+{_KEY_PART}){{{MOST_PARTS}}}"
)


def is_file(path: Path) -> bool:
    """Return whether a regular file is there; a path that cannot be one names none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def exists(path: Path) -> bool:
    """Return whether anything is there; a path that cannot be one names nothing."""
    return is_file(path) or is_folder(path)


def is_folder(path: Path) -> bool:
    """Return whether a folder is there; a path that cannot be one names none."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def read_bytes(path: Path, *, called: str = "", most: int = MOST_BYTES) -> bytes:
    """Return the bytes of a file.

    Args:
        path: The file. A pipe is one too, so that a shell may substitute a process for it.
        called: The name of the file in a refusal, if its path alone says too little.
        most: The number of bytes at which a file is too large.

    Raises:
        UsageProblem: It cannot be read, is too large, or is a folder or a socket.
    """
    called = called or str(path)
    try:
        with closing(_Source(path)) as source:
            return source.read(most)
    except OSError as error:
        reason = error.strerror or str(error)
    except ValueError as error:  # of a path that no system call takes
        reason = str(error)
    raise UsageProblem(f"{called} cannot be read: {reason}.") from None


def read_unpacked(path: Path) -> bytes:
    """Return the bytes of a file that a run wrote, which may be compressed by gzip.

    Raises:
        UsageProblem: It cannot be read, or is too large.
    """
    data = read_bytes(path)
    if not data.startswith(_GZIP):
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
            found = packed.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise UsageProblem(f"{path} cannot be read: {_first_line(error)}.") from None
    if len(found) > MOST_BYTES:
        raise UsageProblem(f"{path} cannot be read: it has more than {MOST_BYTES} bytes.")
    return found


def read_text(path: Path, *, called: str = "", most: int = MOST_BYTES_BY_HAND) -> str:
    """Return the text of a file in UTF-8, with one kind of line ends.

    A byte order mark, as some editors write it, is left out.

    Raises:
        UsageProblem: It cannot be read, is too large, or is no UTF-8 text.
    """
    try:
        text = read_bytes(path, called=called, most=most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageProblem(
            f"{called or path} cannot be read: it is not UTF-8 text (byte {error.start})."
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_toml(path: Path) -> dict[str, Any]:
    """Return the table of a TOML file.

    Raises:
        UsageProblem: It cannot be read, or is not TOML.
    """
    text = read_text(path)
    try:
        return loaded_toml(text)
    except ValueError as error:
        raise UsageProblem(f"{path} is not TOML: {_first_line(error)}.") from None


def loaded_toml(text: str) -> dict[str, Any]:
    """Read TOML as `tomllib.loads` does, with limits.

    Raises:
        ValueError: It is not TOML, is nested too deeply, or has a key of too many parts.
    """
    try:
        _demand_short_keys(text)
        table = tomllib.loads(text)
        _demand_flat(table)
    except RecursionError:
        raise ValueError(_too_deep()) from None
    return table


def loaded(data: bytes | str) -> Any:
    """Read JSON as `json.loads` does, in a quarter of the time.

    Text that the quick reader refuses goes to `json`, which accepts it or says why not.

    Raises:
        ValueError: It is no JSON, is nested too deeply, or has half of a surrogate pair.
    """
    try:
        return from_json(data)
    except ValueError:
        pass
    try:
        value = json.loads(data)
        _demand_flat(value)
    except RecursionError:
        raise ValueError(_too_deep()) from None
    json.dumps(value, ensure_ascii=False).encode()  # text that no file can hold is no text
    return value


class _Source:
    """A file that is open for reading, and never waited for without end."""

    def __init__(self, path: Path) -> None:
        # A pipe without a writer would stop an ordinary open.
        self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._status = os.fstat(self._file)
        self._poll = select.poll()
        self._poll.register(self._file, select.POLLIN)

    def close(self) -> None:
        """Close it."""
        os.close(self._file)

    def read(self, most: int) -> bytes:
        """Return all of it.

        Raises:
            OSError: It cannot be read.
            ValueError: It is too large, or says nothing.
        """
        size = self._status.st_size if stat.S_ISREG(self._status.st_mode) else 0
        parts = list[bytes]()
        length = 0
        while size <= most and length <= most:
            part = self._part()
            if not part:
                return b"".join(parts)
            parts.append(part)
            length += len(part)
        raise ValueError(f"it has more than {most} bytes")

    def _part(self) -> bytes:
        """Return the next bytes; none at the end."""
        until = time.monotonic() + SILENCE_S
        while time.monotonic() < until:
            try:
                return os.read(self._file, _CHUNK_BYTES)
            except BlockingIOError:
                self._poll.poll(1_000 * (until - time.monotonic()))
        raise ValueError(f"nothing has come from it for {SILENCE_S:.0f} s")


def _demand_short_keys(toml: str) -> None:
    """Raise ValueError if a key has too many parts."""
    if key := _LONG_KEY.search(toml):
        line = 1 + toml.count("\n", 0, key.start())
        raise ValueError(f"a key has more than {MOST_PARTS} parts (at line {line})")


def _demand_flat(value: object) -> None:
    """Raise ValueError if lists and tables are nested too deeply."""
    inner = [value]
    for _ in range(MOST_LEVELS):
        tables = [each.values() for each in inner if isinstance(each, dict)]
        lists = [each for each in inner if isinstance(each, list)]
        inner = [part for parts in (*tables, *lists) for part in parts]
        if not inner:
            return
    raise ValueError(_too_deep())


def _too_deep() -> str:
    return f"it is nested more than {MOST_LEVELS} levels deep"


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0].rstrip(".")
