"""Runs a program as one Spark query whose batches reach Kafka whole, each exactly once or at least
once.

State and input positions live in Spark's checkpoint, outputs and the group's offsets in Kafka, and
a crash may fall between any two of them. The order is what makes them agree: Spark logs what a
batch will read, the tasks store the state that comes of it, Kafka takes outputs and offsets in one
transaction, and Spark logs that the batch is done. A restart runs the unfinished batch again, on
the same input and the state before it. If the token with Kafka's offsets names it, it is out: the
state is rebuilt and nothing is sent. At_least_once commits the offsets last, after Spark's log, so
whatever is repeated lies above them.
"""

import contextlib
import json
import re
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from upheld.adapter import Design, Failed
from upheld.generators.envelope_pb2 import Envelope
from upheld.impl.common.lag import lag
from upheld.impl.common.stores import Store, open_store
from upheld.impl.common.table import Table
from upheld.impl.common.topics import topic_ids
from upheld.impl.spark import batcher, branches, dead_letters, ledger, pulse, relay
from upheld.impl.spark.checkpoint import Checkpoint, Positions
from upheld.impl.spark.clock import Clock
from upheld.impl.spark.election import Election
from upheld.impl.spark.joins import JOINS
from upheld.impl.spark.rows import NO_HEADERS
from upheld.impl.spark.session import can_have_workers, open_session, use_local_disk, workers_of
from upheld.impl.spark.writer import Writer

PROGRAMS: dict[str, Any] = {
    "relay": relay,
    "ledger": ledger,
    "branches": branches,
    "batcher": batcher,
    "pulse": pulse,
    **JOINS,
}
LEAST = dict.fromkeys(
    ("commit_interval_ms", "persistence_interval_ms", "threshold", "interval_ms"), 1
)
LEAST["delete_retention_ms"] = 0
WARM_UP_RECORDS, WARM_UP_BATCHES = 100, 1
EARLIEST = -2  # among offsets from which Spark is to read
LOOK_S = 0.05  # how often a finished batch is looked for
CLOSE_DEADLINE_S = 5
FAILURES = {  # what a query dies of -> the kind of failure
    # As said of a record; a plan that is quoted has the words alone.
    r"poison: (?:\S+@\d|a record)[^\n]*": "poison",
    r"CONCURRENT_STREAM_LOG_UPDATE[^\n]*": "fenced",
    r"[^\n]*is out of range for partition[^\n]*": "offset-lost",
    r"(?i)[^\n]*data (?:may have been|was|were|loss)[^\n]*": "offset-lost",
    r"[^\n]*No space left on device[^\n]*": "storage",
}
COLUMNS = (
    "key",
    "value",
    "headers",
    "topic",
    "partition",
    "offset",
    "unix_millis(timestamp) AS timestamp_ms",
)


class Spark(Design):
    """One session, and one query at a time."""

    hello = {  # noqa: RUF012  (a constant of the protocol, never changed)
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
    session: SparkSession
    stream: StreamingQuery
    clock: Clock | None

    def boot(self) -> None:
        """Open the session, and have Python's workers come up before the first batch needs them."""
        self.session, self.processes, self.warm = open_session(), 0, False
        bring_up_workers(self.session)

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        """Prepare all that needs no right to write; who has to be elected first may be ready with
        that.
        """
        self.start, self.program, parameters = (
            start,
            PROGRAMS[start["program"]],
            start["parameters"],
        )
        for name, least in LEAST.items():
            if (value := parameters.get(name, least)) < least:
                raise Failed("conflict", f"{name} is {value}, and must be {least} or more")
        kind, kept, processes = parameters.get("store"), {ledger, branches}, start.get("workers", 0)
        if (
            (self.program not in kept or start["mode"] == "exactly_once")
            if kind
            else self.program is branches
        ):
            return unsupported(
                "a store keeps ledger and branches, the latter always, at_least_once"
            )
        standing_by, letters = start.get("standing_by"), dead_letters.ROLE in start["topics"]
        if letters and (kind or standing_by or self.program not in {ledger, relay}):
            return unsupported(
                "dead letters are those of relay and ledger, with their state in Spark"
            )
        if standing_by and self.program is not ledger:
            return unsupported(
                "what other programs hold back cannot be told apart by where it was read"
            )
        if processes and not can_have_workers(self.session):
            return unsupported("Spark's executors want a Java with jdk.incubator.vector")
        if processes != self.processes and str(self.session.sparkContext.master).startswith(
            "local"
        ):
            self.session.stop()
            self.session, self.processes, self.warm = (
                open_session(workers=processes),
                processes,
                False,
            )
        self.held: dict[bytes, dict[str, Any]] | None = {} if standing_by else None
        self.after: Positions = {}  # where another cluster has ended: what was read below is out
        self.interval_ms = parameters.get(
            "persistence_interval_ms" if kind else "commit_interval_ms", 100
        )
        self.durable = f"{'' if '://' in start['durable_dir'] else 'file://'}{start['durable_dir']}"
        self.location = f"{self.durable}/checkpoint"
        self.checkpoint = Checkpoint(self.location)
        self.topics = [start["topics"][role] for role in self.program.READS]
        self.writer = Writer(start, self.program.WRITES)
        self.topic_ids = topic_ids(self.writer.client, self.topics)
        self.lock, self.closing, self.is_leading = threading.Lock(), False, False
        client, queries = self.writer.client, f"{self.writer.group}-queries"
        self.table = Table(client, queries, self.writer.topic) if self.program is pulse else None
        self.election = Election(start, client) if start.get("several") else None
        self.store: Store | None = None
        if not self.election or self.election.leads:
            self.lead()
        else:
            self.follow()
        self.warm = True
        return {"type": "standing_by"} if self.held is not None else self.names()

    def lead(self) -> None:
        """Fence the predecessor first, then compare Kafka's offsets with the checkpoint, then open
        it.
        """
        start, program = self.start, self.program
        self.writer.fence()
        self.store, self.stored_s, self.hurry = open_store(start), 0.0, threading.Event()
        self.stored = program.Stored(self.store) if self.store else None
        use_local_disk(self.session, start["state_dir"])
        self.session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", program.ARROW_RECORDS)
        self.clock = None
        records, beside, letters = read(self.session.readStream, start, self.topic_ids), None, None
        if dead_letters.ROLE in start["topics"]:
            records, letters = dead_letters.split(records)
        if program is batcher:
            self.clock = Clock(
                f"{self.durable}/ticks", batcher.PAGES, start["parameters"]["interval_ms"]
            )
            beside = self.clock.ticks(self.session)
        elif program.BESIDE:
            topic = start["topics"][program.BESIDE[0]]
            beside = read(self.session.read, start | {"offset_reset": "earliest"}, {topic: b""})
        try:
            self.rows = (
                program.runs_of(records) if self.stored else program.build(records, beside, start)
            )
        except PySparkException as error:
            raise failure_of(str(error)) from error
        if letters is not None:
            self.rows = dead_letters.beside(self.rows, program.WRITES, letters)
        self.begin()
        self.is_leading = True
        # What a query does before its first batch takes seconds, so ready is said when that begins;
        # in a new session when it
        # is out, since it loads everything; and where none is due or it has no records, a query on
        # made-up ones loads it.
        while self.stream.isActive and not self.under_way.wait(LOOK_S):
            if self.stream.status["message"].startswith("Waiting"):
                break
        if not self.warm and self.stream.isActive and not any((self.sent or {}).values()):
            warm_up(self.session, program)

    def follow(self) -> None:
        """Do beforehand what a first batch would wait for: the program runs for nobody, from where
        its group has committed.
        """
        committed, _ = self.writer.committed(self.topics)
        places: dict[str, dict[int, int]] = {topic: {} for topic in self.topics}
        for place in self.writer.places:
            places[place.topic][place.partition] = committed.get(
                (place.topic, place.partition), EARLIEST
            )
        from_there = self.start | {"offset_reset": json.dumps(places)}
        records = read(self.session.readStream, from_there, self.topic_ids, WARM_UP_RECORDS)
        warm_up(self.session, self.program, self.start["topics"], records)

    def names(self) -> dict[str, Any]:
        """What is known of it on the broker."""
        application_id, own = (
            self.start["application_id"],
            [self.election.topic] if self.election else [],
        )
        return {
            "consumer_group": self.writer.group,
            "transactional_id_prefix": application_id,
            "internal_topics": own,
        }

    def activate(self, after: dict[str, int]) -> dict[str, Any]:
        """Send what was held back and not sent by the cluster that ended there; from now on nothing
        is held back.
        """
        with self.lock:
            assert self.held is not None
            rows, self.held = list(self.held.values()), None
            places = ((*place.rpartition("-")[::2], offset) for place, offset in after.items())
            self.after = {(topic, int(partition)): offset for topic, partition, offset in places}
            if any(offset < self.held_from.get(place, 0) for place, offset in self.after.items()):
                raise Failed(
                    "conflict",
                    "this cluster was started again, and what it held back before is gone",
                )
            if self.sent:
                self.writer.write(
                    self.due(pa.Table.from_pylist(rows, self.columns)), self.sent, self.token
                )
        return self.names()

    def deactivate(self) -> dict[str, Any]:
        """Say where the last batch that was sent ended."""
        ends = self.sent or self.checkpoint.finished()
        return {
            "type": "deactivated",
            "emitted_through": {f"{t}-{p}": offset for (t, p), offset in ends.items()},
        }

    def due(self, table: pa.Table) -> pa.Table:
        """The rows whose last entry was read where no other cluster has read."""
        are_due = [is_at_or_above(self.after, headers) for headers in table["headers"].to_pylist()]
        return table.filter(pa.array(are_due, pa.bool_()))

    def begin(self) -> None:
        """Find out whether the batch that Spark has not finished is out, refuse any other
        disagreement, and start.
        """
        self.failure: Failed | None = None
        self.checkpoint.compare(self.topic_ids)
        self.under_way = threading.Event()
        self.sent: Positions | None = None
        self.token: dict[str, Any] = {
            "query": self.checkpoint.query_id(),
            "incarnation": uuid.uuid4().hex,
        }
        self.settled, token = self.writer.committed(self.topics)
        self.held_from = finished = self.checkpoint.finished()
        batch = self.checkpoint.last("offsets")
        is_unfinished = batch is not None and batch != self.checkpoint.last("commits")
        names_it = (token.get("query"), token.get("batch")) == (self.token["query"], batch)
        is_its = names_it and self.settled == self.checkpoint.ends(batch)
        self.out = batch if self.writer.exactly_once and is_unfinished and is_its else None
        if self.out is None and any(
            offset > finished.get(place, 0) for place, offset in self.settled.items()
        ):
            raise Failed(
                "conflict",
                f"{self.writer.group} is ahead of this checkpoint; start with the one it belongs "
                "to",
            )
        # An interval is waited for by the wall clock; where the time is input there is none, and
        # the source is polled as often.
        self.session.conf.set("spark.sql.streaming.pollingDelay", f"{self.interval_ms}ms")
        self.stream = (
            self.rows.writeStream.foreachBatch(self.batch)
            .option("checkpointLocation", self.location)
            .trigger(processingTime=f"{0 if self.clock else self.interval_ms} milliseconds")
            .start()
        )

    def batch(self, rows: DataFrame, batch: int) -> None:
        """Send one batch, unless it is out already; to collect it is what makes the tasks run and
        store the state.
        """
        with self.lock:
            if self.closing:
                raise InterruptedError(
                    "the query is being closed; this batch runs at the next start"
                )
            try:
                began, ends = time.monotonic(), self.checkpoint.ends(batch)
                if self.warm and any(ends.values()):
                    self.under_way.set()
                table = rows.toArrow()
                if self.clock:
                    table = self.clock.hear(table, began)
                if self.stored:
                    table = self.stored.apply(table)
                if self.held is not None:
                    self.held |= {row["key"]: row for row in table.to_pylist()}
                    self.columns, table = table.schema, table.slice(0, 0)
                elif self.after:
                    table = self.due(table)
                    if all(ends.get(place, 0) >= offset for place, offset in self.after.items()):
                        self.after = {}  # all that follows was read by nobody else
                if batch != self.out and (len(table) or ends != self.sent):
                    self.token |= {"query": self.checkpoint.query_id(), "batch": batch}
                    self.writer.write(table, ends, self.token)
                # After a slow batch Spark begins the next one on time, which is too soon.
                if self.stored:
                    self.hurry.wait(
                        max(0.0, self.stored_s + self.interval_ms / 1000 - time.monotonic())
                    )
                    self.stored.write()
                    self.stored_s = time.monotonic()
                self.sent = ends
                self.under_way.set()
                if self.clock:
                    self.clock.sent()
                    self.clock.tick()  # for the next batch, which begins at once
            except Failed as failure:
                self.failure = failure
                raise

    def run(self, stopping: threading.Event) -> None:
        """Wait to be elected, then watch the query until it ends or is asked to; whatever it dies
        of is said aloud.
        """
        while not (self.is_leading or stopping.is_set()):
            assert self.election
            if self.election.look(LOOK_S):
                self.lead()
        while not (stopping.is_set() or self.closing):
            if self.election and not self.election.look(0):
                raise Failed("fenced", f"another instance leads {self.election.topic}")
            try:
                self.stream.awaitTermination(LOOK_S)  # type: ignore[arg-type]  # its stub forgets fractions of a second
                self.settle()
                if self.clock and not self.stream.status["isDataAvailable"]:
                    self.clock.tick()
            except StreamingQueryException as error:
                if self.closing:
                    return
                failure = self.failure or failure_of(str(error))
                if self.failure or failure.kind != "fenced" or not self.writer.exactly_once:
                    raise failure from error
                # A zombie woke up and wrote into the checkpoint. Whoever can still commit is its
                # owner, and opens it again.
                self.writer.commit(self.checkpoint.finished(), self.token)
                self.begin()
        if not self.closing:
            self.close()

    def measure(self) -> dict[str, Any]:
        """Add up the pages of the last finished batch, as Spark's state reader finds them in the
        checkpoint.
        """
        pages = self.session.read.format("statestore").option("stateVarName", "page")
        states = (
            pages.option("operatorId", number).load(self.location)
            for number in self.checkpoint.operators()
        )
        sizes = [
            state.selectExpr("sum(octet_length(to_json(value)))").collect()[0][0] or 0
            for state in states
        ]
        return {"type": "measured", "size": sum(sizes), "unit": "bytes"}

    def lag(self) -> dict[str, Any]:
        """By what the group has committed, not by Spark's checkpoint: the two are compared at a
        start.
        """
        return lag(self.writer.offsets, self.writer.places)

    def workers(self) -> dict[str, Any]:
        """Spark's executors; whichever dies, its tasks run elsewhere, and the cluster's master
        replaces it.
        """
        return {"type": "workers", "pids": workers_of(self.session)}

    def query(self, table: str, key: str) -> dict[str, Any]:
        """Answer from the output topic."""
        return (
            self.table.answer(key)
            if self.table and table == pulse.WRITES
            else super().query(table, key)
        )

    def settle(self) -> None:
        """Under at_least_once, commit what Spark is done with: a crash repeats only what lies
        above.
        """
        if self.writer.exactly_once or self.sent == self.settled:
            return
        if (finished := self.checkpoint.finished()) != self.settled:
            self.writer.commit(finished, self.token)
            self.settled = finished

    def close(self) -> None:
        """End the query; only then let another instance take over."""
        if self.is_leading:
            self.end()
        for kept in (self.table, self.store, self.election):
            if kept:
                kept.close()

    def release(self, failure: Failed) -> bool:
        """What one query died of is no concern of the session, unless its storage failed."""
        self.close()
        return failure.kind != "storage"

    def end(self) -> None:
        """Let what waits go, let the batch under way finish and be logged, let no other begin, and
        end the query.
        """
        until = time.monotonic() + CLOSE_DEADLINE_S
        if (clock := self.clock) and not self.failure:
            clock.tick(closing=True)
            while (
                (clock.under_way or not clock.is_closed)
                and self.stream.isActive
                and time.monotonic() < until
            ):
                time.sleep(LOOK_S)
        self.hurry.set()
        with self.lock:
            self.closing = True
        # The next batch, if it has begun, is refused.
        with contextlib.suppress(StreamingQueryException):
            while (
                self.sent and self.sent != self.checkpoint.finished() and time.monotonic() < until
            ):
                self.stream.awaitTermination(LOOK_S)  # type: ignore[arg-type]  # its stub forgets fractions of a second
        self.stream.stop()
        self.settle()


def is_at_or_above(places: Positions, headers: list[dict[str, Any]]) -> bool:
    """Whether the last hop of a row's chain, where its last entry was read, is not below these
    positions.
    """
    (chain,) = (header["value"] for header in headers if header["key"] == "chain")
    hop = Envelope.FromString(chain).chain[-1]
    return bool(hop.offset >= places.get((hop.topic, hop.partition), 0))


def read(
    reader: Any, start: dict[str, Any], topic_ids: dict[str, bytes], at_most: int = 0
) -> DataFrame:
    """The records of topics, committed ones only, as a stream, in batches of so many at most, or as
    they are now.
    """
    ids = " ".join(
        f"WHEN '{topic}' THEN unhex('{each.hex()}')" for topic, each in topic_ids.items()
    )
    options = {
        "subscribe": ",".join(topic_ids),
        "startingOffsets": start["offset_reset"],
        "includeHeaders": "true",
        "kafka.bootstrap.servers": start["bootstrap"],
        "kafka.isolation.level": "read_committed",
        "groupIdPrefix": start["application_id"],
        "kafka.fetch.max.wait.ms": 10,
        "kafka.max.poll.records": 10_000,
        "maxOffsetsPerTrigger": at_most or PROGRAMS[start["program"]].BATCH_RECORDS,
        **security(start["client"]),
    }
    return (
        reader.format("kafka")
        .options(**options)
        .load()
        .selectExpr(*COLUMNS, f"CASE topic {ids} END AS topic_id")
    )


def security(client: dict[str, str]) -> dict[str, str]:
    """librdkafka's security properties as the Java client's, for Spark's Kafka source."""
    options: dict[str, str] = {}
    for name, value in client.items():
        match name:
            case "sasl.mechanism" | "sasl.mechanisms":
                options["sasl.mechanism"] = value
            case "ssl.ca.location":
                options |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": value}
            case "ssl.certificate.location":
                options |= {
                    "ssl.keystore.type": "PEM",
                    "ssl.keystore.certificate.chain": Path(value).read_text(),
                }
            case "ssl.key.location":
                options["ssl.keystore.key"] = Path(value).read_text()
            case "ssl.endpoint.identification.algorithm":
                options[name] = "" if value == "none" else value
            case "security.protocol" | "ssl.key.password":
                options[name] = value
    if "sasl.username" in client:
        module = (
            "scram.ScramLoginModule"
            if "SCRAM" in options.get("sasl.mechanism", "")
            else "plain.PlainLoginModule"
        )
        user, password = (json.dumps(client[f"sasl.{name}"]) for name in ("username", "password"))
        login = (
            f"org.apache.kafka.common.security.{module} required username={user} "
            f"password={password};"
        )
        options["sasl.jaas.config"] = login
    return {f"kafka.{name}": value for name, value in options.items()}


def unsupported(reason: str) -> dict[str, Any]:
    """The answer to a start that asks for what is not offered."""
    return {"type": "unsupported", "reason": reason}


def failure_of(text: str) -> Failed:
    """Name what a query died of."""
    for pattern, kind in FAILURES.items():
        if match := re.search(pattern, text):
            return Failed(kind, match[0])
    return Failed("storage", text.splitlines()[0])


def bring_up_workers(session: SparkSession) -> None:
    """Run a job without a state: the workers come up on one core while the JVM plans the query on
    the other.
    """
    job = session.range(2).mapInArrow(lambda batches: batches, "id long")
    threading.Thread(target=job.toArrow, daemon=True).start()


def warm_up(
    session: SparkSession,
    program: Any,
    topics: dict[str, str] | None = None,
    real: DataFrame | None = None,
) -> None:
    """Run a program on made-up records, and on real ones if they are given, for nobody: class
    loading, compilation and Python workers are what a first batch waits for."""
    topics = topics or {role: role for role in (*program.READS, *program.BESIDE)}
    start = {"topics": topics, "parameters": {"threshold": 1, "interval_ms": 1}}

    def made_up(numbers: DataFrame, roles: tuple[str, ...]) -> DataFrame:
        names = ", ".join(repr(topics[role]) for role in roles)
        topic = f"elt(cast(1 + value % {len(roles)} as int), {names}) as topic"
        row = "cast('a' as binary) as key", f"unhex('{program.MADE_UP.hex()}') as value", topic
        return numbers.selectExpr(
            *row, "0 as partition", "value as offset", "0L as timestamp_ms", f"{NO_HEADERS} as headers",
            "cast('' as binary) as topic_id",
        )  # fmt: skip

    numbers = (
        session.readStream.format("rate-micro-batch").option("rowsPerBatch", WARM_UP_RECORDS).load()
    )
    beside = made_up(session.range(1).toDF("value"), program.BESIDE) if program.BESIDE else None
    with tempfile.TemporaryDirectory(prefix="upheld-warm-up-") as folder:
        if program is batcher:
            beside = Clock(f"file://{folder}/ticks", 1, 1).ticks(session)
        records = made_up(numbers, program.READS)
        query = (
            program.build(records.unionByName(real) if real else records, beside, start)
            .writeStream.foreachBatch(lambda rows, _: rows.toArrow())
            .option("checkpointLocation", f"{folder}/checkpoint")
            .start()
        )
        while not ((done := query.lastProgress) and done["batchId"] >= WARM_UP_BATCHES):
            query.awaitTermination(LOOK_S)  # its stub knows whole ones only
        query.stop()
