"""Duties of every server that keeps states, wherever it runs."""

import time

import pytest
import redis

from upheld.stores import Store
from upheld.stores.redis_server import Redis

END_S = 10.0


def hear(store: Store, writes: int) -> None:
    """Wait until the store has told so many writes, which it tells behind the answer."""
    until = time.monotonic() + END_S
    while store.version() < writes and time.monotonic() < until:
        time.sleep(0.01)


def comes_back(store: Redis) -> None:
    """Hold that a server goes on where it was killed.

    While the server is down, no client reaches it, and its rows are told all the same.
    """
    design = redis.Redis.from_url(store.address, retry=None)
    design.hset("app:balances", "ada", "1")
    with store.down():
        with pytest.raises(redis.exceptions.ConnectionError):
            design.hset("app:balances", "ada", "2")
        assert store.rows() == [("balances", "ada", "1")]
    design.hset("app:balances", "bob", "3")
    hear(store, 2)

    assert store.rows() == [("balances", "ada", "1"), ("balances", "bob", "3")]
    assert [write[1:] for write in store.writes()] == [("balances", "ada"), ("balances", "bob")]
    design.close()
