"""The two ways in which a run cannot begin, each one sentence for a person and an exit code for a
script.
"""


class Problem(Exception):
    """Something that the person who typed the command can act on; its text is one clear
    sentence.
    """

    exit_code = 3


class MachineProblem(Problem):
    """This machine lacks something, or something on it broke: no engine, no Java, port taken, disk
    full (exit 3).
    """


class UsageProblem(Problem):
    """What the user typed or wrote cannot be understood (exit 4)."""

    exit_code = 4


def is_interrupt(error: BaseException) -> bool:
    """Whether it is Ctrl-C; inside a call of confluent-kafka Python makes a SystemError of that
    (its issue 1708).
    """
    return isinstance(error, KeyboardInterrupt) or (
        isinstance(error, SystemError) and isinstance(error.__cause__, KeyboardInterrupt)
    )
