"""Threads of the harness, whose failures are heard.

A thread that dies of an exception would leave the row to wait for what never comes. So its
exception is kept, and raised where the row waits, or when it ends.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")

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


def begun(act: Callable[[], Result], name: str) -> "Future[Result]":
    """Begin to do something on a daemon thread of its own, and return its future.

    An exception of it is for the one who asks for the result.
    """
    future: Future[Result] = Future()

    def acting() -> None:
        try:
            future.set_result(act())
        except BaseException as error:  # noqa: BLE001 - the one who asks gets it
            future.set_exception(error)

    threading.Thread(target=acting, name=name, daemon=True).start()
    return future


def raise_failure() -> None:
    """Raise the first exception of a thread that was not raised yet, if there is one."""
    if _failures:
        raise _failures.pop(0)


def forget_failures() -> None:
    """Forget the exceptions of threads, which are of a row that has ended."""
    _failures.clear()
