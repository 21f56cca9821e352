"""Threads of the harness, whose failures are heard.

A thread that dies of an exception would leave the row to wait for what never comes. So its
exception is kept, and raised where the row waits, or when it ends.
"""

import threading
from collections.abc import Callable

_failures: list[BaseException] = []


class Heard(threading.Thread):
    """A daemon thread whose exception ends the row under way."""

    def __init__(self, target: Callable[..., object], *arguments: object, name: str) -> None:
        super().__init__(target=target, args=arguments, name=name, daemon=True)

    def run(self) -> None:
        """Call the target, and keep its exception."""
        try:
            super().run()
        except BaseException as error:  # noqa: BLE001 - raised by `raise_failure`
            error.add_note(f"in the thread {self.name}")
            _failures.append(error)


def raise_failure() -> None:
    """Raise the first exception of a thread that was not raised yet, if there is one."""
    if _failures:
        raise _failures.pop(0)


def forget_failures() -> None:
    """Forget the exceptions of threads, which are of a row that has ended."""
    _failures.clear()
