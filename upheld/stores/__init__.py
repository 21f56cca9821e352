"""Stores that keep a design's state outside of it, and the harness's own look at what is written
there.

Every store has one layout: for each stage (the role of its output topic) and key one value, a JSON
object with the fields of the program's row; it may hold more. Each write is seen by other means
than the design's word.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from upheld.stores.cassandra_server import Cassandra
from upheld.stores.redis_server import Redis, reachable
from upheld.stores.sqlite import Sqlite
from upheld.supervisor.reaper import RunScope


class Store(Protocol):
    """One application's store; a design is given its `address`."""

    address: str

    def rows(self) -> list[tuple[str, str, str]]:
        """Stage, key and value of everything that is kept."""
        ...

    def writes(self) -> list[tuple[float, str, str]]:
        """How many seconds ago, stage and key of every write since this was asked last."""
        ...

    def version(self) -> int:
        """A number that changes when somebody else has written; quick enough to be asked all the
        time.
        """
        ...

    def held(self) -> AbstractContextManager[None]:
        """Meanwhile nobody can write; who reads sees what was there before.

        NotOffered where nothing does that.
        """
        ...

    def down(self) -> AbstractContextManager[None]:
        """Meanwhile nobody reaches it; it comes back with what it had acknowledged.

        NotOffered where that is not ours to do.
        """
        ...

    def close(self) -> None:
        """End it, or let go of it."""
        ...


# a run, a folder for it, whose state it keeps, and the address of one that was given, if any
STORES: dict[str, Callable[[RunScope, Path, str, str], Store]] = {
    "sqlite": Sqlite,
    "redis": Redis,
    "cassandra": Cassandra,
}
# the kinds that may be given, and what tries the address
GIVEN: dict[str, Callable[[str], str]] = {"redis": reachable}

__all__ = ["GIVEN", "STORES", "Cassandra", "Redis", "Sqlite", "Store"]
