"""Brokers of single rows: the next one starts while a row is judged."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from itertools import count
from pathlib import Path

from upheld.brokers import Broker
from upheld.errors import MachineProblem
from upheld.threads import begun


class Ahead:
    """Brokers that are taken one by one, with at most one that waits."""

    def __init__(self, start: Callable[[Path], Broker], logs: Path) -> None:
        """Start nothing yet.

        Args:
            start: Starts a broker whose log is in that folder, and returns once it answers.
            logs: The folder in which each broker has one of its own.
        """
        self._start = start
        self._logs = logs
        self._numbers = count(1)
        self._lock = threading.Lock()
        self._next: Future[Broker] | None = None
        self._is_closed = False

    def prepare(self) -> None:
        """Begin to start the next broker, unless one is starting or waits."""
        with self._lock:
            if self._next is None and not self._is_closed:
                self._next = self._begin()

    def rest(self) -> None:
        """Wait until nothing starts, so that a measurement has the machine for itself."""
        with self._lock:
            starting = self._next
        if starting:
            starting.exception()

    def take(self) -> Broker:
        """Return the broker that waits, or else one that is started now.

        Raises:
            MachineProblem: None can be started.
        """
        with self._lock:
            if self._is_closed:
                raise MachineProblem("No broker is started any more: the run ends.")
            taken, self._next = self._next, None
        broker = (taken or self._begin()).result()
        if broker.ended(0):  # it died while it waited
            return self._begin().result()
        return broker

    def close(self) -> None:
        """End the broker that nobody took."""
        with self._lock:
            self._is_closed = True
            left, self._next = self._next, None
        if left and left.exception() is None:
            left.result().close()

    def _begin(self) -> "Future[Broker]":
        """Begin to start a broker on a thread of its own; a failure waits for the taker."""
        logs = self._logs / f"row-{next(self._numbers)}"
        return begun(partial(self._start, logs), "broker")
