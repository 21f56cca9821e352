"""The targets of `tools/fuzz.py`: one module for each reader of what others wrote.

The module `x` has a function `x(data: bytes) -> None`. It raises if the reader has a defect, and
says nothing else: a refusal in one sentence is what a reader is for. The module may have `SEEDS`,
inputs to begin with, and `WORDS`, pieces that mean something to the reader.
"""

import atexit
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from upheld.errors import ExitCode, UsageProblem
from upheld.text import escaped

ROOT: Final = Path(__file__).parents[2]
MOST_SENTENCE: Final = 2_000  # characters of a refusal


@cache
def folder() -> Path:
    """Return the folder in which a target's file lies; it goes with the process."""
    made = Path(tempfile.mkdtemp(prefix="upheld-fuzz-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def file_of(name: str, data: bytes) -> Path:
    """Write an input into a file of that name, and return its path."""
    path = folder() / name
    path.write_bytes(data)
    return path


@contextmanager
def refused() -> Iterator[None]:
    """Let a reader refuse its input, in one sentence and with exit code 4.

    Raises:
        AssertionError: The refusal is no sentence.
    """
    try:
        yield
    except UsageProblem as problem:
        _demand_sentence(problem)


def is_plain(said: str) -> bool:
    """Return whether a text is one line without control characters.

    It may have any space.
    """
    return escaped(said) == said


def _demand_sentence(problem: UsageProblem) -> None:
    said = str(problem)
    assert problem.exit_code == ExitCode.USAGE
    assert is_plain(said), repr(said)
    assert 0 < len(said) <= MOST_SENTENCE


def contents(paths: Iterable[Path]) -> tuple[bytes, ...]:
    """Return the bytes of files, to begin with."""
    return tuple(path.read_bytes() for path in paths)
