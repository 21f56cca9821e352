"""A Cassandra: each application has a keyspace of its own on the one server of a run, with the
table `state`.

What is written is read from the server's full query log, which tells every statement that
succeeded, with its own time.
"""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from upheld.errors import MachineProblem
from upheld.stores.cassandra_server.process import HOST, WRITERS, server_of
from upheld.supervisor.reaper import RunScope
from upheld.verdicts import Inconclusive

_ANSWER_S = 20.0
_AGAIN_S = 0.1
_NAME_MAX = 48  # letters that Cassandra takes
_KEYSPACE = (
    "CREATE KEYSPACE {0} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
)
_NOTHING = "DELETE FROM {0}.state WHERE stage = 'none' AND key = 'none'"
_TABLE = "CREATE TABLE {0}.state (stage text, key text, value text, PRIMARY KEY (stage, key))"


class Cassandra:
    """An application's keyspace; `address` is `cassandra://HOST:PORT/KEYSPACE`, which the design is
    given.
    """

    def __init__(self, run: RunScope, _folder: Path, application_id: str, _given: str = "") -> None:
        self._server = server_of(run)
        self._keyspace = re.sub(r"\W", "_", application_id)[-_NAME_MAX:]
        self.address = f"cassandra://{HOST}:{self._server.port}/{self._keyspace}"
        self._asked = 0
        self._kept: list[tuple[str, str, str]] | None = None  # while it is down
        self._cluster = _cluster(self._server.port)
        try:
            self._session = self._cluster.connect()
            self._ask(_KEYSPACE)
            self._ask(_TABLE)
            # Before its first write a server has no threads for it, which `held` takes away.
            self._ask(_NOTHING)
        except BaseException:
            self._cluster.shutdown()
            raise

    def _ask(self, statement: str) -> list[Any]:
        from cassandra import DriverException  # noqa: PLC0415
        from cassandra.cluster import NoHostAvailable  # noqa: PLC0415

        try:
            return list(self._session.execute(statement.format(self._keyspace)))
        except (DriverException, NoHostAvailable) as error:
            ended = self._server.process.poll() is not None
            said = "has ended" if ended else f"does not answer ({type(error).__name__})"
            raise MachineProblem(f"The Cassandra of this run {said}") from None

    def rows(self) -> list[tuple[str, str, str]]:
        """Stage, key and value of everything that is kept."""
        if self._kept is not None:
            return self._kept
        return sorted(
            (row.stage, row.key, row.value or "")
            for row in self._ask("SELECT stage, key, value FROM {0}.state")
        )

    def writes(self) -> list[tuple[float, str, str]]:
        """How many seconds ago, stage and key of every write since this was asked last.

        Inconclusive where a statement is none of those that docs/protocol.md names: it cannot be
        said which rows it wrote.
        """
        told = self._server.queries.writes(self._keyspace)
        new, self._asked = told[self._asked :], len(told)
        if unreadable := next((write.unreadable for write in new if write.unreadable), ""):
            raise Inconclusive(
                f"a state was written by what the harness cannot read rows from: {unreadable[:200]}"
            )
        return [(time.time() - write.at_s, write.stage, write.key) for write in new]

    def version(self) -> int:
        """A number that changes when somebody else has written; quick enough to be asked all the
        time.
        """
        return len(self._server.queries.writes(self._keyspace))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Meanwhile nobody can write; who reads sees what was there before."""
        self._server.write_with(threads=0)
        try:
            yield
        finally:
            self._server.write_with(threads=WRITERS)

    @contextmanager
    def down(self) -> Iterator[None]:
        """Meanwhile the server is killed; it comes back with what it had acknowledged, which `rows`
        tells all along.
        """
        self._server.write_with(threads=0)
        self._kept = self.rows()
        self._server.kill()
        try:
            yield
        finally:
            self._server.serve_again()
            self._kept, until = None, time.monotonic() + _ANSWER_S
            while not self._is_back():
                if time.monotonic() > until:
                    self._ask(_NOTHING)

    def _is_back(self) -> bool:
        """Whether the driver has found it again; it has the threads that write from its first write
        on.
        """
        from cassandra import DriverException  # noqa: PLC0415
        from cassandra.cluster import NoHostAvailable  # noqa: PLC0415

        with suppress(DriverException, NoHostAvailable):
            self._session.execute(_NOTHING.format(self._keyspace))
            return True
        time.sleep(_AGAIN_S)
        return False

    def close(self) -> None:
        """Let go of the keyspace; it ends with the server."""
        self._cluster.shutdown()


def _cluster(port: int) -> Any:
    """The driver, told to look for no other nodes."""
    # Imported late: it takes a quarter of a second to load, and few scenarios need it.
    from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile  # noqa: PLC0415
    from cassandra.policies import ConstantReconnectionPolicy, RoundRobinPolicy  # noqa: PLC0415

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
