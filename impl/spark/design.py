"""The reference design: the verbs of the protocol, on one Spark session."""

import threading
from typing import Any

from pyspark.sql import SparkSession

from upheld.adapter import Design, Failed
from upheld.impl.common.election import Election
from upheld.impl.common.lag import lag
from upheld.impl.common.parameters import check_parameters
from upheld.impl.common.table import Table
from upheld.impl.spark import dead_letters
from upheld.impl.spark.program import PROGRAMS, STORED
from upheld.impl.spark.query import Query
from upheld.impl.spark.session import can_have_workers, open_session, workers_of
from upheld.impl.spark.warmup import LOOK_S, bring_up_workers

HELLO: dict[str, Any] = {
    "name": "spark",
    "version": "1",
    "language": "python",
    "programs": list(PROGRAMS),
    "modes": ["at_least_once", "exactly_once"],
    "capabilities": [
        *("reusable", "measure", "lag", "query", "scale", "workers", "standby"),
        *("sqlite", "redis", "cassandra", "effects", "dead-letters"),
    ],
}


class Spark(Design):
    """One session, and one query at a time."""

    hello = HELLO
    session: SparkSession
    running: Query  # the query of the last start
    table: Table | None
    election: Election | None
    is_open = False

    def boot(self) -> None:
        """Open the session, and let Python's workers come up before a batch needs them."""
        self.session = open_session()
        self.processes = 0
        self.is_warm = False
        bring_up_workers(self.session)

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        """Lead or follow; return the fields of `ready`.

        All that needs no right to write is prepared before an election. So an instance that has yet
        to be elected is ready with that.
        """
        check_parameters(start["parameters"])
        if reason := self.refusal(start):
            return {"type": "unsupported", "reason": reason}
        self.start = start
        self.have_processes(start.get("workers", 0))
        self.running = Query(self.session, start)
        writer = self.running.writer
        is_asked = start["program"] == "pulse"
        queries = f"{writer.group}-queries"
        self.table = Table(writer.client, queries, writer.topic) if is_asked else None
        self.election = Election(start, writer.client) if start.get("several") else None
        self.is_open = True
        if not self.election or self.election.leads:
            self.running.lead(is_warm=self.is_warm)
        else:
            self.running.follow()
        self.is_warm = True
        return {"type": "standing_by"} if start.get("standing_by") else self.names()

    def refusal(self, start: dict[str, Any]) -> str | None:
        """Return the reason why a start is not supported, if there is one."""
        program = start["program"]
        store = start["parameters"].get("store")
        is_stored = program in STORED and start["mode"] != "exactly_once"
        if (store and not is_stored) or (not store and program == "branches"):
            return "a store keeps ledger and branches, the latter always, at_least_once"
        stands_by = start.get("standing_by")
        if dead_letters.ROLE in start["topics"] and (
            store or stands_by or program not in {"ledger", "relay"}
        ):
            return "dead letters are those of relay and ledger, with their state in Spark"
        if stands_by and program != "ledger":
            return "what other programs hold back cannot be told apart by where it was read"
        if start.get("workers", 0) and not can_have_workers(self.session):
            return "Spark's executors want a Java with jdk.incubator.vector"
        return None

    def have_processes(self, processes: int) -> None:
        """Take a session with this many worker processes, unless a master was given."""
        is_own = str(self.session.sparkContext.master).startswith("local")
        if processes != self.processes and is_own:
            self.session.stop()
            self.session = open_session(workers=processes)
            self.processes = processes
            self.is_warm = False

    def names(self) -> dict[str, Any]:
        """Return the names that the design has on the broker."""
        return {
            "consumer_group": self.running.writer.group,
            "transactional_id_prefix": self.start["application_id"],
            "internal_topics": [self.election.topic] if self.election else [],
        }

    def activate(self, after: dict[str, int]) -> dict[str, Any]:
        """Go on where another cluster has ended, and send what was held back above that."""
        places = ((*place.rpartition("-")[::2], offset) for place, offset in after.items())
        self.running.take_over(
            {(topic, int(partition)): offset for topic, partition, offset in places}
        )
        return self.names()

    def deactivate(self) -> dict[str, Any]:
        """Return where the last batch that was sent ended."""
        ends = self.running.emitted_through()
        return {
            "type": "deactivated",
            "emitted_through": {f"{t}-{p}": offset for (t, p), offset in ends.items()},
        }

    def run(self, stopping: threading.Event) -> None:
        """Wait to be elected, then watch the query until it ends or is asked to.

        Raises:
            Failed: The failure that the query died of, or the loss of the lead.
        """
        running = self.running
        while not (running.is_leading or stopping.is_set()):
            assert self.election
            if self.election.look(LOOK_S):
                running.lead(is_warm=self.is_warm)
        while not (stopping.is_set() or running.is_closing):
            if self.election and not self.election.look(0):
                raise Failed("fenced", f"another instance leads {self.election.topic}")
            running.watch()
        if not running.is_closing:
            self.close()

    def measure(self) -> dict[str, Any]:
        """Return how many bytes the states have.

        Spark's state reader finds the pages of the last finished batch in the checkpoint.
        """
        pages = self.session.read.format("statestore").option("stateVarName", "page")
        states = (
            pages.option("operatorId", number).load(self.running.location)
            for number in self.running.checkpoint.operators()
        )
        sizes = [
            state.selectExpr("sum(octet_length(to_json(value)))").collect()[0][0] or 0
            for state in states
        ]
        return {"type": "measured", "size": sum(sizes), "unit": "bytes"}

    def lag(self) -> dict[str, Any]:
        """Return the lag of what the group has committed.

        Spark's checkpoint has no part in it: the two are compared at a start.
        """
        writer = self.running.writer
        return lag(writer.offsets, writer.places)

    def workers(self) -> dict[str, Any]:
        """Return the process ids of Spark's executors.

        If one dies, its tasks run elsewhere, and the cluster's master replaces it.
        """
        return {"type": "workers", "pids": workers_of(self.session)}

    def query(self, table: str, key: str) -> dict[str, Any]:
        """Answer from the output topic."""
        if self.table and table == PROGRAMS["pulse"].WRITES:
            return self.table.answer(key)
        return super().query(table, key)

    def close(self) -> None:
        """End the query; only then let another instance take over."""
        running = self.running
        if running.is_leading:
            running.end()
        for kept in (self.table, running.store, self.election):
            if kept:
                kept.close()

    def release(self, failure: Failed) -> bool:
        """Let go of the query; the session is as good as new, unless its storage failed."""
        self.close()
        return failure.kind != "storage"
