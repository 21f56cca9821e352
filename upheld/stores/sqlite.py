"""A database file: the table `state` (stage, key, value), and a trigger's own line for each write
to it.
"""

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from upheld.supervisor.reaper import RunScope
from upheld.verdicts import NotOffered

# A line for each write, whether it inserts, updates or replaces; its time is the wall clock's, in
# milliseconds.
_TABLES = """
CREATE TABLE state (stage TEXT, key TEXT, value TEXT, PRIMARY KEY (stage, key));
CREATE TABLE writes (number INTEGER PRIMARY KEY, at_ms INTEGER, stage TEXT, key TEXT);
"""
_TRIGGER = """
CREATE TRIGGER {event}ed AFTER {event} ON state BEGIN
  INSERT INTO writes (at_ms, stage, key)
  VALUES (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER), new.stage, new.key);
END;
"""
_HELD_S = 10.0  # a design that writes for so long is not let go of its lock


class Sqlite:
    """One application's database file; `address` is its path, which the design is given."""

    def __init__(
        self, _run: RunScope, folder: Path, _application_id: str, _given: str = ""
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.address = str(folder / "store.db")
        self._db = sqlite3.connect(
            self.address, isolation_level=None, timeout=_HELD_S, check_same_thread=False
        )
        self._db.execute("PRAGMA journal_mode = WAL")  # who reads waits for nobody
        self._db.executescript(
            _TABLES + _TRIGGER.format(event="INSERT") + _TRIGGER.format(event="UPDATE")
        )
        self._known = 0

    def rows(self) -> list[tuple[str, str, str]]:
        """Stage, key and value of everything that is kept."""
        return self._db.execute(
            "SELECT stage, key, value FROM state ORDER BY stage, key"
        ).fetchall()

    def writes(self) -> list[tuple[float, str, str]]:
        """How many seconds ago, stage and key of every write since this was asked last."""
        found = self._db.execute(
            "SELECT number, at_ms, stage, key FROM writes WHERE number > ? ORDER BY number",
            [self._known],
        ).fetchall()
        self._known = found[-1][0] if found else self._known
        return [(time.time() - at_ms / 1000, stage, key) for _, at_ms, stage, key in found]

    def version(self) -> int:
        """A number that changes when somebody else has written; quick enough to be asked all the
        time.
        """
        return int(self._db.execute("PRAGMA data_version").fetchone()[0])

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Meanwhile nobody can write; who reads sees what was there before."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            self._db.execute("ROLLBACK")

    def down(self) -> contextlib.AbstractContextManager[None]:
        """A file has no server that could be killed."""
        raise NotOffered("a database file is never down")

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()
