"""Stores tell each write, and keep what they had."""

import shutil
import sqlite3
from pathlib import Path

import pytest
import redis
from servers import comes_back, hear

from upheld.stores import Cassandra, Sqlite
from upheld.stores.redis_server import Redis
from upheld.supervisor.reaper import RunScope
from upheld.verdicts import NotOffered


def test_every_write_to_the_file_leaves_a_line(tmp_path: Path) -> None:
    """A row that is inserted, updated or replaced is seen.

    A store that is held or full is not written.
    """
    with RunScope() as run:
        store = Sqlite(run, tmp_path, "app")
        before = store.version()
        design = sqlite3.connect(store.address, timeout=0, isolation_level=None)
        design.execute("INSERT INTO state VALUES ('balances', 'ada', '1')")
        design.execute("UPDATE state SET value = '2'")
        design.execute("INSERT OR REPLACE INTO state VALUES ('balances', 'ada', '3')")

        assert store.version() != before
        assert [write[1:] for write in store.writes()] == [("balances", "ada")] * 3
        assert store.writes() == []
        with store.held(), pytest.raises(sqlite3.OperationalError, match="locked"):
            design.execute("UPDATE state SET value = '4'")
        with store.full(), pytest.raises(sqlite3.DatabaseError, match="disk is full"):
            design.execute("UPDATE state SET value = '4'")
        assert store.rows() == [("balances", "ada", "3")]
        design.execute("UPDATE state SET value = '5'")
        assert store.rows() == [("balances", "ada", "5")]
        design.close()
        store.close()


def test_a_file_that_holds_no_row_is_read_all_the_same(tmp_path: Path) -> None:
    """Cells of any type are text, and a table that the design has dropped has no rows.

    Faults in either are the design's, and a check names them.
    """
    with RunScope() as run:
        store = Sqlite(run, tmp_path, "app")
        design = sqlite3.connect(store.address, timeout=0, isolation_level=None)
        design.execute("INSERT INTO state VALUES ('balances', 'ada', NULL)")
        design.execute("INSERT INTO state VALUES ('balances', 'bob', X'FF')")
        design.execute("INSERT INTO state VALUES ('balances', 'eve', 7)")

        assert store.rows() == [
            ("balances", "ada", ""),
            ("balances", "bob", "\ufffd"),
            ("balances", "eve", "7"),
        ]
        assert [write[2] for write in store.writes()] == ["ada", "bob", "eve"]
        design.execute("DROP TABLE state")
        design.execute("DROP TABLE writes")
        assert (store.rows(), store.writes()) == ([], [])
        design.close()
        store.close()


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="there is no redis-server on PATH")
def test_a_server_that_holds_no_row_is_read_all_the_same(tmp_path: Path) -> None:
    """A key that is no hash holds no rows, and bytes that are no text become text."""
    with RunScope() as run:
        store = Redis(run, tmp_path, "app")
        design = redis.Redis.from_url(store.address, socket_timeout=0.2, retry=None)
        design.set("app:balances", "1")
        design.hset("app:totals", "ada", b"\xff")

        assert store.rows() == [("totals", "ada", "\ufffd")]
        design.close()
        store.close()


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="there is no redis-server on PATH")
def test_every_write_to_the_server_is_told(tmp_path: Path) -> None:
    """One command may write many fields, whatever their values hold.

    A store that is held is read and not written.
    """
    with RunScope() as run:
        store = Redis(run, tmp_path, "app")
        design = redis.Redis.from_url(
            store.address, decode_responses=True, socket_timeout=0.2, retry=None
        )
        design.hset("app:balances", mapping={"ada": '{"a": "b c"}', "bob": '\\"'})
        design.hset("other:balances", "eve", "1")
        hear(store, 2)

        assert [write[1:] for write in store.writes()] == [("balances", "ada"), ("balances", "bob")]
        assert store.writes() == []
        with store.held():
            with pytest.raises(redis.exceptions.TimeoutError):
                design.hset("app:balances", "ada", "2")
            assert store.rows() == [("balances", "ada", '{"a": "b c"}'), ("balances", "bob", '\\"')]
        with store.full(), pytest.raises(redis.exceptions.OutOfMemoryError):
            design.hset("app:balances", "ada", "2")
        design.hset("app:balances", "ada", "2")
        design.close()
        store.close()


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="there is no redis-server on PATH")
def test_a_server_comes_back_with_what_it_had(tmp_path: Path) -> None:
    """A server from PATH."""
    with RunScope() as run:
        store = Redis(run, tmp_path, "app")
        comes_back(store)
        store.close()


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="there is no redis-server on PATH")
def test_a_given_server_keeps_what_is_not_the_application_s(tmp_path: Path) -> None:
    """A run deletes its own rows from a given server, and nothing else.

    It never kills such a server.
    """
    with RunScope() as run:
        theirs = Redis(run, tmp_path, "theirs")
        store = Redis(run, tmp_path, "app", theirs.address)
        with redis.Redis.from_url(theirs.address) as design:
            design.hset("theirs:balances", "ada", "1")
            design.hset("app:balances", "ada", "1")

        with pytest.raises(NotOffered), store.down():
            pass
        store.close()

        assert theirs.rows() == [("balances", "ada", "1")]
        theirs.close()


def test_a_java_that_cassandra_cannot_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cassandra 5 cannot log its queries on a new Java, so its store is not offered.

    The reason says which Java would do.
    """
    new = tmp_path / "java"
    new.write_text("#!/bin/sh\necho 'openjdk version \"25.0.1\"' >&2\n")
    new.chmod(0o755)
    monkeypatch.setenv("UPHELD_JAVA", str(new))

    with (
        RunScope() as run,
        pytest.raises(
            NotOffered, match=r"^this machine has no Cassandra .* is not a Java 17 to 19"
        ),
    ):
        Cassandra(run, tmp_path, "app")
