"""A database file: the table `state` (stage, key, value), and a log of its writes.

A trigger adds a line to the log for each write.
"""

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from upheld.stores.layout import Kept, Written
from upheld.supervisor.reaper import RunScope
from upheld.verdicts import NotOffered

# Each insert, update or replace adds a line to `writes`, at the wall clock's time.
_TABLES: Final = """
CREATE TABLE state (stage TEXT, key TEXT, value TEXT, PRIMARY KEY (stage, key));
CREATE TABLE writes (number INTEGER PRIMARY KEY, at_ms INTEGER, stage TEXT, key TEXT);
"""
_TRIGGER: Final = """
CREATE TRIGGER {event}ed AFTER {event} ON state BEGIN
  INSERT INTO writes (at_ms, stage, key)
  VALUES (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER), new.stage, new.key);
END;
"""
_REFUSAL: Final = """
CREATE TRIGGER no_{event} BEFORE {event} ON state BEGIN
  SELECT RAISE(ABORT, 'database or disk is full');
END;
"""
_HELD_S: Final = 10.0  # how long a write of the design may hold the lock
# What a design can make of its file: the table is gone, or the file is no database any more.
_NO_ROWS: Final = {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class Sqlite:
    """One application's database file; `address` is its path, which the design gets."""

    def __init__(
        self, _run: RunScope, folder: Path, _application_id: str, _given: str = ""
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.address = str(folder / "store.db")
        self._db = sqlite3.connect(
            self.address, isolation_level=None, timeout=_HELD_S, check_same_thread=False
        )
        self._db.text_factory = _decoded
        self._db.execute("PRAGMA journal_mode = WAL")  # readers wait for no writer
        self._db.executescript(
            _TABLES + _TRIGGER.format(event="INSERT") + _TRIGGER.format(event="UPDATE")
        )
        self._known = 0

    def rows(self) -> list[Kept]:
        """Return all rows that are kept.

        Every field that a design wrote is read as text, whatever it is.
        """
        found = self._found("SELECT stage, key, value FROM state ORDER BY stage, key")
        return [Kept(*map(_text, row)) for row in found]

    def _found(self, statement: str, *values: int) -> list[tuple[Any, ...]]:
        """Return the rows of a statement, and none where the design has left no such table."""
        try:
            return self._db.execute(statement, values).fetchall()
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode not in _NO_ROWS:
                raise
            return []

    def writes(self) -> list[Written]:
        """Return the writes since the last call."""
        found = self._found(
            "SELECT number, at_ms, stage, key FROM writes WHERE number > ? ORDER BY number",
            self._known,
        )
        self._known = found[-1][0] if found else self._known
        return [
            Written(time.time() - at_ms / 1000, _text(stage), _text(key))
            for _, at_ms, stage, key in found
        ]

    def version(self) -> int:
        """Return a number that changes when another client has written."""
        return int(self._db.execute("PRAGMA data_version").fetchone()[0])

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Let no client write meanwhile; readers see what was there before."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            self._db.execute("ROLLBACK")

    @contextlib.contextmanager
    def full(self) -> Iterator[None]:
        """Answer every write with an error meanwhile; readers see what was there before.

        The file itself has room, and its harness too: triggers refuse the rows.
        """
        self._db.executescript(_REFUSAL.format(event="INSERT") + _REFUSAL.format(event="UPDATE"))
        try:
            yield
        finally:
            self._db.executescript("DROP TRIGGER no_INSERT; DROP TRIGGER no_UPDATE;")

    def down(self) -> contextlib.AbstractContextManager[None]:
        """Raise NotOffered: a file has no server that could be killed."""
        raise NotOffered("a database file is never down")

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def _text(cell: object) -> str:
    """Return a cell as text; NULL is empty."""
    if isinstance(cell, bytes):
        return _decoded(cell)
    return "" if cell is None else str(cell)


def _decoded(data: bytes) -> str:
    return data.decode(errors="replace")
