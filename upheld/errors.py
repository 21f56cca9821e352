"""The problems with which a command ends before it has judged anything.

Each is one sentence for the user and an exit code for a script.
"""

import errno
import os
import tempfile
import traceback
from enum import IntEnum
from pathlib import Path
from typing import Final

import upheld
from upheld.text import printable, visible

# A system call ends with these for a name that cannot be a file's, whoever the user is.
OF_A_NAME: Final = {errno.ENAMETOOLONG, errno.ELOOP}
ISSUES: Final = "Issues"  # the label of that page among the addresses of the package
NO_PAGE: Final = "the issues of the repository that it came from"


class ExitCode(IntEnum):
    """The exit code of a command; `upheld.cli.EXIT_CODES` says what each means."""

    UPHELD = 0
    VIOLATED = 1
    INCONCLUSIVE = 2
    HARNESS_FAILED = 3
    USAGE = 4
    NOTHING_JUDGED = 5
    INTERRUPTED = 130


class Problem(Exception):
    """A problem that the user can act on; its text is one clear sentence."""

    exit_code = ExitCode.HARNESS_FAILED

    def __init__(self, text: str = "") -> None:
        super().__init__(visible(text))


class MachineProblem(Problem):
    """This machine lacks something, or something on it broke (exit 3).

    Examples are no container engine, no Java, a port that is taken, a full disk.
    """


class UsageProblem(Problem):
    """The command line or a file of the user cannot be understood (exit 4)."""

    exit_code = ExitCode.USAGE


def is_interrupt(error: BaseException) -> bool:
    """Return whether an exception is Ctrl-C.

    Inside a call of confluent-kafka, Python makes a SystemError of it (confluent-kafka's issue
    1708).
    """
    return isinstance(error, KeyboardInterrupt) or (
        isinstance(error, SystemError) and isinstance(error.__cause__, KeyboardInterrupt)
    )


def problem_of(error: BaseException) -> Problem | None:
    """Return the problem that an error of the system means; None if it is ours."""
    if isinstance(error, MemoryError):
        return MachineProblem("This machine has too little memory for it.")
    if not isinstance(error, OSError):
        return None
    if error.errno in OF_A_NAME and error.filename:
        return UsageProblem(f"{error.filename} is no name of a file: {error.strerror}.")
    where = f" ({error.filename})" if error.filename else ""
    return MachineProblem(f"the machine refused: {error.strerror or error}{where}.")


def harness_failed(error: BaseException, trace: Path | None) -> str:
    """Return the sentence on an exception that nothing foresaw."""
    said = visible(" ".join(f"{type(error).__name__}: {error}".split()))
    return f"the harness failed ({said}); {to_report(trace)}"


def to_report(trace: Path | None) -> str:
    """Return the request to report a fault, with the file of its traceback."""
    with_it = f", with its traceback in {trace}" if trace else ""
    return f"please report this fault of upheld {upheld.__version__} at {_page()}{with_it}."


def kept(error: BaseException, folder: Path | None = None) -> Path | None:
    """Write a traceback to a new file, and return it; None if there is no room.

    The file is in the folder, or else among the temporary files.
    """
    try:
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(".txt", "harness-failed-", folder)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(printable("".join(traceback.format_exception(error))))
    except OSError:
        return None
    return Path(name)


def _page() -> str:
    """Return the address of the issues that the package names; in words if it names none."""
    from importlib.metadata import PackageNotFoundError, metadata  # few commands fail

    try:
        named: list[str] = metadata("upheld").get_all("Project-URL") or []
    except PackageNotFoundError:
        named = []
    addresses = [entry.partition(", ") for entry in named]
    return next((address for label, _, address in addresses if label == ISSUES), NO_PAGE)
