"""A Cassandra: each application has a keyspace of its own on a run's one server.

It has the table `state`. Writes are read from the server's full query log, which tells every
statement that succeeded, with its own time.
"""

import re
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from upheld.errors import MachineProblem
from upheld.stores.cassandra_server.process import HOST, WRITERS, server_of
from upheld.stores.layout import Kept, Written
from upheld.supervisor.reaper import RunScope
from upheld.verdicts import Inconclusive, NotOffered

_ANSWER_S: Final = 20.0
_AGAIN_S: Final = 0.1
_NAME_MAX: Final = 48  # letters that Cassandra takes
_SHOWN_CHARS: Final = 200
_KEYSPACE: Final = (
    "CREATE KEYSPACE {0} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
)
_NOTHING: Final = "DELETE FROM {0}.state WHERE stage = 'none' AND key = 'none'"
_TABLE: Final = (
    "CREATE TABLE {0}.state (stage text, key text, value text, PRIMARY KEY (stage, key))"
)


class Cassandra:
    """An application's keyspace; the design gets its `address`.

    It is `cassandra://HOST:PORT/KEYSPACE`.
    """

    def __init__(self, run: RunScope, _folder: Path, application_id: str, _given: str = "") -> None:
        self._server = server_of(run)
        self._keyspace = re.sub(r"\W", "_", application_id)[-_NAME_MAX:]
        self.address = f"cassandra://{HOST}:{self._server.port}/{self._keyspace}"
        self._reported = 0
        self._kept: list[Kept] | None = None  # while it is down
        self._cluster = _cluster(self._server.port)
        try:
            self._session = self._cluster.connect()
            self._ask(_KEYSPACE)
            self._ask(_TABLE)
            # A server has no threads that write before its first write, and `held` needs them.
            self._ask(_NOTHING)
        except BaseException:
            self._cluster.shutdown()
            raise

    def _ask(self, statement: str) -> list[Any]:
        from cassandra import DriverException
        from cassandra.cluster import NoHostAvailable

        try:
            return list(self._session.execute(statement.format(self._keyspace)))
        except (DriverException, NoHostAvailable) as error:
            ended = self._server.process.poll() is not None
            said = "has ended" if ended else f"does not answer ({type(error).__name__})"
            raise MachineProblem(f"The Cassandra of this run {said}") from None

    def rows(self) -> list[Kept]:
        """Return all rows that are kept."""
        if self._kept is not None:
            return self._kept
        return sorted(
            Kept(row.stage, row.key, row.value or "")
            for row in self._ask("SELECT stage, key, value FROM {0}.state")
        )

    def writes(self) -> list[Written]:
        """Return the writes since the last call.

        Raises:
            Inconclusive: A statement is none of those that docs/protocol.md names, so the harness
                cannot tell which rows it wrote.
        """
        known = self._server.queries.writes(self._keyspace)
        new = known[self._reported :]
        self._reported = len(known)
        if unreadable := next((write.unreadable for write in new if write.unreadable), ""):
            shown = unreadable[:_SHOWN_CHARS]
            raise Inconclusive(
                f"a state was written by what the harness cannot read rows from: {shown}"
            )
        return [Written(time.time() - write.at_s, write.stage, write.key) for write in new]

    def version(self) -> int:
        """Return a number that changes when another client has written."""
        return len(self._server.queries.writes(self._keyspace))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let no client write meanwhile; readers see what was there before."""
        self._server.write_with(threads=0)
        try:
            yield
        finally:
            self._server.write_with(threads=WRITERS)

    def full(self) -> AbstractContextManager[None]:
        """Raise NotOffered: no setting makes a live server answer writes so."""
        raise NotOffered("the harness cannot fill a Cassandra")

    @contextmanager
    def down(self) -> Iterator[None]:
        """Kill the server meanwhile; it comes back with all that it had acknowledged.

        `rows` returns this all along.
        """
        self._server.write_with(threads=0)
        self._kept = self.rows()
        self._server.kill()
        try:
            yield
        finally:
            self._server.serve_again()
            self._kept = None
            until = time.monotonic() + _ANSWER_S
            while not self._is_back():
                if time.monotonic() > until:
                    self._ask(_NOTHING)

    def _is_back(self) -> bool:
        """Return whether the driver has found the server again.

        The server has the threads that write from its first write on.
        """
        from cassandra import DriverException
        from cassandra.cluster import NoHostAvailable

        with suppress(DriverException, NoHostAvailable):
            self._session.execute(_NOTHING.format(self._keyspace))
            return True
        time.sleep(_AGAIN_S)
        return False

    def close(self) -> None:
        """Let go of the keyspace; it ends with the server."""
        self._cluster.shutdown()


def _cluster(port: int) -> Any:
    """Return the driver, which looks for no other nodes."""
    from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
    from cassandra.policies import ConstantReconnectionPolicy, RoundRobinPolicy

    profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), request_timeout=_ANSWER_S)
    return Cluster(
        [HOST],
        port=port,
        protocol_version=4,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        connect_timeout=_ANSWER_S,
        reconnection_policy=ConstantReconnectionPolicy(_AGAIN_S, max_attempts=None),
        schema_metadata_enabled=False,
        token_metadata_enabled=False,
    )
