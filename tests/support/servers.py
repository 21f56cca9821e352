"""What every server that keeps states has to do, wherever it runs."""

import time

import pytest
import redis

from upheld.stores import Redis, Store

END_S = 10.0


def hear(store: Store, writes: int) -> None:
    """Wait until it was told of so many writes; what is told travels behind the answer."""
    until = time.monotonic() + END_S
    while store.version() < writes and time.monotonic() < until:
        time.sleep(0.01)


def comes_back(store: Redis) -> None:
    """While it is down nobody reaches it, and what it holds is told all the same; then it goes on
    where it was killed.
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
