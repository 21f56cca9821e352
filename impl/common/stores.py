"""Clients of the state stores; the layout is that of docs/protocol.md."""

import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Protocol, cast
from urllib.parse import urlsplit

from upheld.adapter import Failed

LOCKED_S: Final = 60.0  # how long a write waits for a store that does not answer
AGAIN_S: Final = 0.2  # how long it waits between two attempts


class Store(Protocol):
    """The values of the keys of each stage."""

    def rows(self, stage: str) -> dict[str, str]:
        """Return every key of a stage with its value."""
        ...

    def write(self, stage: str, rows: Mapping[str, str]) -> None:
        """Write these keys; return once all of them are written."""
        ...

    def close(self) -> None:
        """Let go of the store."""
        ...


class Sqlite:
    """The table `state` of a database file."""

    def __init__(self, address: str) -> None:
        self.db = sqlite3.connect(address, timeout=LOCKED_S, check_same_thread=False)

    def rows(self, stage: str) -> dict[str, str]:
        """Return every key of a stage with its value."""
        return dict(self.db.execute("SELECT key, value FROM state WHERE stage = ?", [stage]))

    def write(self, stage: str, rows: Mapping[str, str]) -> None:
        """Write these keys in one transaction."""
        with self.db:
            self.db.executemany(
                "INSERT INTO state VALUES (?, ?, ?) ON CONFLICT (stage, key) DO UPDATE SET value "
                "= excluded.value",
                [(stage, key, value) for key, value in rows.items()],
            )

    def close(self) -> None:
        """Close the file."""
        self.db.close()


class Redis:
    """A hash `APPLICATION_ID:STAGE` for each stage."""

    def __init__(self, address: str, application_id: str) -> None:
        import redis
        from redis.backoff import ConstantBackoff
        from redis.retry import Retry

        # A second write of the same values changes nothing.
        again = Retry(ConstantBackoff(AGAIN_S), int(LOCKED_S / AGAIN_S))
        self.client = redis.Redis.from_url(address, decode_responses=True, retry=again)
        self.prefix = f"{application_id}:"

    def rows(self, stage: str) -> dict[str, str]:
        """Return every key of a stage with its value."""
        return cast(dict[str, str], self.client.hgetall(self.prefix + stage))

    def write(self, stage: str, rows: Mapping[str, str]) -> None:
        """Write these keys by one command."""
        if rows:
            self.client.hset(self.prefix + stage, mapping=dict[Any, Any](rows))

    def close(self) -> None:
        """Close the connections."""
        self.client.close()


class Cassandra:
    """The table `state` of the keyspace that a URL names."""

    def __init__(self, address: str) -> None:
        from cassandra import cluster, policies

        url = urlsplit(address)
        profile = cluster.ExecutionProfile(
            load_balancing_policy=policies.RoundRobinPolicy(), request_timeout=LOCKED_S
        )
        self.cluster = cluster.Cluster(
            [url.hostname],
            port=url.port,
            execution_profiles={cluster.EXEC_PROFILE_DEFAULT: profile},
            reconnection_policy=policies.ConstantReconnectionPolicy(AGAIN_S, max_attempts=None),
        )
        self.session = self.cluster.connect(url.path.removeprefix("/"))
        self.select = self.session.prepare("SELECT key, value FROM state WHERE stage = ?")
        self.insert = self.session.prepare("INSERT INTO state (stage, key, value) VALUES (?, ?, ?)")

    def rows(self, stage: str) -> dict[str, str]:
        """Return every key of a stage with its value."""
        return dict(self.session.execute(self.select, [stage]))

    def write(self, stage: str, rows: Mapping[str, str]) -> None:
        """Write these keys, many at a time and each by itself.

        A second write of the same values changes nothing, so a failed attempt is made again.
        """
        from cassandra import OperationTimedOut, RequestExecutionException
        from cassandra.cluster import NoHostAvailable
        from cassandra.concurrent import execute_concurrent_with_args

        until = time.monotonic() + LOCKED_S
        while True:
            try:
                execute_concurrent_with_args(
                    self.session, self.insert, [(stage, *row) for row in rows.items()]
                )
            except (NoHostAvailable, OperationTimedOut, RequestExecutionException):
                if time.monotonic() > until:
                    raise
                time.sleep(AGAIN_S)
            else:
                return

    def close(self) -> None:
        """Close the connections."""
        self.cluster.shutdown()


def open_store(start: dict[str, Any]) -> Store | None:
    """Return the store that a start names, if it names one."""
    match kind := start["parameters"].get("store"):
        case None:
            return None
        case "sqlite":
            return Sqlite(start["stores"][kind])
        case "cassandra":
            return Cassandra(start["stores"][kind])
        case _:
            return Redis(start["stores"][kind], start["application_id"])


@contextmanager
def loudly(kind: str | None) -> Iterator[None]:
    """Turn an error that a store answers with into a loud stop.

    Args:
        kind: The kind of the store; None if there is none.

    Raises:
        Failed: The driver of the store has raised an error of its own.
    """
    try:
        yield
    except Exception as error:
        if not isinstance(error, errors_of(kind)):
            raise
        raise Failed("storage", f"the store ({kind}) answers with {error!r}") from error


def errors_of(kind: str | None) -> tuple[type[Exception], ...]:
    """Return what the driver of a kind of store raises."""
    match kind:
        case None:
            return ()
        case "sqlite":
            return (sqlite3.Error,)
        case "cassandra":
            from cassandra import DriverException
            from cassandra.cluster import NoHostAvailable

            return DriverException, NoHostAvailable
        case _:
            from redis import RedisError

            return (RedisError,)
