"""Stores that keep a design's state outside of it, and the harness's view of them.

Every store has one layout. For each stage (the role of its output topic) and key it has one value.
The value is a JSON object with the fields of the program's row, and may hold more. The harness sees
each write by other means than the design's word.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, Protocol

from upheld import extras
from upheld.errors import MachineProblem
from upheld.stores.cassandra_server import Cassandra
from upheld.stores.layout import Kept, Written
from upheld.stores.sqlite import Sqlite
from upheld.supervisor.reaper import RunScope
from upheld.verdicts import MachineLacks


class Store(Protocol):
    """One application's store; a design gets its `address`."""

    address: str

    def rows(self) -> list[Kept]:
        """Return all rows that are kept."""
        ...

    def writes(self) -> list[Written]:
        """Return the writes since the last call."""
        ...

    def version(self) -> int:
        """Return a number that changes when another client has written.

        It is quick enough to be asked all the time.
        """
        ...

    def held(self) -> AbstractContextManager[None]:
        """Let no client write meanwhile; readers see what was there before.

        Raises:
            NotOffered: This store cannot do that.
        """
        ...

    def full(self) -> AbstractContextManager[None]:
        """Answer every write with an error meanwhile; readers see what was there before.

        Raises:
            NotOffered: This store cannot do that.
        """
        ...

    def down(self) -> AbstractContextManager[None]:
        """Let no client reach the store meanwhile.

        It comes back with all that it had acknowledged.

        Raises:
            NotOffered: The harness cannot, or may not, do that to this store.
        """
        ...

    def close(self) -> None:
        """End the store, or let go of it."""
        ...


def _demand_client(kind: str) -> None:
    """Raise MachineLacks if the client of a kind of store is not installed."""
    if lack := extras.lack(kind):
        raise MachineLacks(lack)


def _redis(run: RunScope, folder: Path, application_id: str, given: str = "") -> Store:
    _demand_client("redis")
    from upheld.stores.redis_server import Redis

    return Redis(run, folder, application_id, given)


def _cassandra(run: RunScope, folder: Path, application_id: str, given: str = "") -> Store:
    _demand_client("cassandra")
    return Cassandra(run, folder, application_id, given)


def _reachable_redis(address: str) -> str:
    if lack := extras.lack("redis"):
        raise MachineProblem(f"The store of --store redis cannot be reached: {lack}.")
    from upheld.stores.redis_server import reachable

    return reachable(address)


# Called with the run, a folder, the application's id, and the address if one was given.
STORES: Final[dict[str, Callable[[RunScope, Path, str, str], Store]]] = {
    "sqlite": Sqlite,
    "redis": _redis,
    "cassandra": _cassandra,
}
# The kinds that may be given, and the function that tries the address.
GIVEN: Final[dict[str, Callable[[str], str]]] = {"redis": _reachable_redis}

__all__ = ["GIVEN", "STORES", "Cassandra", "Kept", "Sqlite", "Store", "Written"]
