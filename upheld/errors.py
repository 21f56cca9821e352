"""The problems with which a command ends before it has judged anything.

Each is one sentence for the user and an exit code for a script.
"""


class Problem(Exception):
    """A problem that the user can act on; its text is one clear sentence."""

    exit_code = 3


class MachineProblem(Problem):
    """This machine lacks something, or something on it broke (exit 3).

    Examples are no container engine, no Java, a port that is taken, a full disk.
    """


class UsageProblem(Problem):
    """The command line or a file of the user cannot be understood (exit 4)."""

    exit_code = 4


def is_interrupt(error: BaseException) -> bool:
    """Return whether an exception is Ctrl-C.

    Inside a call of confluent-kafka, Python makes a SystemError of it (confluent-kafka's issue
    1708).
    """
    return isinstance(error, KeyboardInterrupt) or (
        isinstance(error, SystemError) and isinstance(error.__cause__, KeyboardInterrupt)
    )
