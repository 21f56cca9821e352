"""Clients of the state stores, for the designs that are written in Python; the layout is that of docs/protocol.md."""

import sqlite3
from collections.abc import Mapping
from typing import Any, Protocol, cast

import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

LOCKED_S, AGAIN_S = 60.0, 0.2  # how long a write waits for a store that does not answer, and how often it is tried


class Store(Protocol):
    """The values of one stage's keys."""

    def rows(self, stage: str) -> dict[str, str]:
        """Every key with its value."""
        ...

    def write(self, stage: str, rows: Mapping[str, str]) -> None:
        """Write these keys, all of them or none."""
        ...


class Sqlite:
    """The table `state` of a database file."""

    def __init__(self, address: str) -> None:
        self.db = sqlite3.connect(address, timeout=LOCKED_S, check_same_thread=False)

    def rows(self, stage: str) -> dict[str, str]:
        """Every key with its value."""
        return dict(self.db.execute("SELECT key, value FROM state WHERE stage = ?", [stage]))

    def write(self, stage: str, rows: Mapping[str, str]) -> None:
        """Write these keys in one transaction."""
        with self.db:
            self.db.executemany(
                "INSERT INTO state VALUES (?, ?, ?) ON CONFLICT (stage, key) DO UPDATE SET value = excluded.value",
                [(stage, key, value) for key, value in rows.items()],
            )


class Redis:
    """A hash `APPLICATION_ID:STAGE` for each stage."""

    def __init__(self, address: str, application_id: str) -> None:
        again = Retry(ConstantBackoff(AGAIN_S), int(LOCKED_S / AGAIN_S))  # what is written twice is the same
        self.client = redis.Redis.from_url(address, decode_responses=True, retry=again)
        self.prefix = f"{application_id}:"

    def rows(self, stage: str) -> dict[str, str]:
        """Every key with its value."""
        return cast(dict[str, str], self.client.hgetall(self.prefix + stage))

    def write(self, stage: str, rows: Mapping[str, str]) -> None:
        """Write these keys by one command."""
        if rows:
            self.client.hset(self.prefix + stage, mapping=dict[Any, Any](rows))


def open_store(start: dict[str, Any]) -> Store | None:
    """The store that a start names, if it does."""
    match kind := start["parameters"].get("store"):
        case None:
            return None
        case "sqlite":
            return Sqlite(start["stores"][kind])
        case _:
            return Redis(start["stores"][kind], start["application_id"])
