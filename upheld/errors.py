"""The problems with which a command ends before it has judged anything.

Each is one sentence for the user and an exit code for a script.
"""

from enum import IntEnum

from upheld.text import visible


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
