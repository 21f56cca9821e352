"""A program as one Spark query whose batches reach Kafka whole.

Each batch is sent exactly once or at least once, as the mode asks. State and input positions live
in Spark's checkpoint, outputs and the group's offsets in Kafka, and a crash may fall between any
two of them. The order of the steps makes them agree:

1. Spark logs what a batch will read.
2. The tasks store the state that comes of it.
3. Kafka takes outputs and offsets in one transaction.
4. Spark logs that the batch is done.

A restart runs the unfinished batch again, on the same input and the state before it. If the token
with Kafka's offsets names the batch, it is out: the state is rebuilt and nothing is sent. Under
at_least_once the offsets are committed last, after Spark's log, so whatever is repeated lies above
them.
"""

import contextlib
import json
import threading
import time
import uuid
from typing import Any, Final

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from upheld.adapter import Failed
from upheld.impl.common.stores import Store, loudly, open_store
from upheld.impl.common.topics import topic_ids
from upheld.impl.spark import batcher, dead_letters
from upheld.impl.spark.checkpoint import Checkpoint, Positions
from upheld.impl.spark.clock import Clock
from upheld.impl.spark.failures import failure_of
from upheld.impl.spark.program import PROGRAMS, STORED, Program, States
from upheld.impl.spark.session import use_local_disk
from upheld.impl.spark.source import read
from upheld.impl.spark.standby import Standby
from upheld.impl.spark.warmup import LOOK_S, WARM_UP_RECORDS, look_at, warm_up
from upheld.impl.spark.writer import Token, Writer

EARLIEST: Final = -2  # among offsets from which Spark is to read
CLOSE_DEADLINE_S: Final = 5


class Query:
    """The query of one start, and its place in Kafka and in the checkpoint.

    Several instances of an application have a query each. One instance leads, the others follow.
    """

    stream: StreamingQuery
    rows: DataFrame
    states: States | None  # if a store keeps them
    clock: Clock | None
    failure: Failed | None  # of the last batch
    sent: Positions | None  # where the last batch that was sent ends
    settled: Positions  # the offsets of the group
    held_from: Positions  # where Spark had ended when this query began
    token: Token  # names query and batch beside the offsets of the group
    out: int | None  # the batch that Kafka has and Spark has not finished

    def __init__(self, session: SparkSession, start: dict[str, Any]) -> None:
        parameters = start["parameters"]
        durable = start["durable_dir"]
        self.session = session
        self.start = start
        self.program: Program = PROGRAMS[start["program"]]
        self.standby = Standby(stands_by=bool(start.get("standing_by")))
        self.interval_ms: int = parameters.get(
            "persistence_interval_ms" if parameters.get("store") else "commit_interval_ms", 100
        )
        self.durable = durable if "://" in durable else f"file://{durable}"
        self.location = f"{self.durable}/checkpoint"
        self.checkpoint = Checkpoint(self.location)
        self.topics = [start["topics"][role] for role in self.program.READS]
        self.writer = Writer(start, self.program.WRITES)
        self.topic_ids = topic_ids(self.writer.client, self.topics)
        self.lock = threading.Lock()
        self.is_closing = False
        self.is_leading = False
        self.store: Store | None = None

    def follow(self) -> None:
        """Do beforehand what a first batch would wait for.

        The program runs for nobody, from where its group has committed.
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

    def lead(self, *, is_warm: bool) -> None:
        """Fence the predecessor, compare Kafka's offsets with the checkpoint, and open it.

        `is_warm` says that the session has loaded what a batch needs.
        """
        self.is_warm = is_warm
        self.writer.fence()
        with loudly(self.start["parameters"].get("store")):
            self.store = open_store(self.start)
            stored = STORED[self.start["program"]] if self.store else None
            self.states = stored.states_of(self.store) if stored and self.store else None
        self.stored_s = 0.0
        self.hurry = threading.Event()
        use_local_disk(self.session, self.start["state_dir"])
        records = self.program.ARROW_RECORDS
        self.session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", records)
        self.rows = self.plan()
        self.begin()
        self.is_leading = True
        self.wait_for_a_batch()

    def plan(self) -> DataFrame:
        """Return the results as a stream, with dead letters if there is a topic."""
        start = self.start
        self.clock = None
        records = read(self.session.readStream, start, self.topic_ids, self.program.BATCH_RECORDS)
        letters = None
        if dead_letters.ROLE in start["topics"]:
            records, letters = dead_letters.split(records)
        beside = self.beside()
        try:
            rows = (
                STORED[start["program"]].runs_of(records)
                if self.states
                else self.program.build(records, beside, start)
            )
        except PySparkException as error:
            raise failure_of(str(error)) from error
        if letters is None:
            return rows
        return dead_letters.beside(rows, self.program.WRITES, letters)

    def beside(self) -> DataFrame | None:
        """Return the second input of a program, if it has one: ticks, or a topic as it is."""
        start = self.start
        if self.program is PROGRAMS["batcher"]:
            interval_ms = start["parameters"]["interval_ms"]
            self.clock = Clock(f"{self.durable}/ticks", batcher.PAGES, interval_ms)
            return self.clock.ticks(self.session)
        if not self.program.BESIDE:
            return None
        topic = start["topics"][self.program.BESIDE[0]]
        earliest = start | {"offset_reset": "earliest"}
        return read(self.session.read, earliest, {topic: b""}, self.program.BATCH_RECORDS)

    def wait_for_a_batch(self) -> None:
        """Return once the design is ready.

        A query takes seconds before its first batch. So a design is ready when that batch begins,
        and in a new session when it is out, since it loads everything. If no batch is due, or the
        first one has no records, a query on made-up records loads everything.
        """
        while self.stream.isActive and not self.under_way.wait(LOOK_S):
            if self.stream.status["message"].startswith("Waiting"):
                break
        if not self.is_warm and self.stream.isActive and not any((self.sent or {}).values()):
            warm_up(self.session, self.program)

    def begin(self) -> None:
        """Compare Kafka's offsets with the checkpoint, and start the query.

        A batch that Spark has not finished may be out already. Any other disagreement is refused.
        """
        self.failure = None
        self.checkpoint.compare(self.topic_ids)
        self.under_way = threading.Event()
        self.sent = None
        self.token = {"query": self.checkpoint.query_id(), "incarnation": uuid.uuid4().hex}
        self.settled, token = self.writer.committed(self.topics)
        finished = self.checkpoint.finished()
        self.held_from = finished
        batch = self.checkpoint.last("offsets")
        is_unfinished = batch is not None and batch != self.checkpoint.last("commits")
        names_it = (token.get("query"), token.get("batch")) == (self.token["query"], batch)
        is_its = names_it and self.settled == self.checkpoint.ends(batch)
        self.out = batch if self.writer.exactly_once and is_unfinished and is_its else None
        is_ahead = any(offset > finished.get(place, 0) for place, offset in self.settled.items())
        if self.out is None and is_ahead:
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
        """Send one batch, unless it is out already."""
        with self.lock:
            if self.is_closing:
                raise InterruptedError(
                    "the query is being closed; this batch runs at the next start"
                )
            try:
                self.send(rows, batch)
            except Failed as failure:
                self.failure = failure
                raise

    def send(self, rows: DataFrame, batch: int) -> None:
        """Collect a batch, and write what is due.

        To collect the batch makes the tasks run and store the state.
        """
        began = time.monotonic()
        ends = self.checkpoint.ends(batch)
        if self.is_warm and any(ends.values()):
            self.under_way.set()
        table = rows.toArrow()
        if self.clock:
            table = self.clock.hear(table, began)
        if self.states:
            table = self.states.apply(table)
        table = self.standby.sift(table, ends)
        if batch != self.out and (len(table) or ends != self.sent):
            self.token |= {"query": self.checkpoint.query_id(), "batch": batch}
            self.writer.write(table, ends, self.token)
        if self.states:
            self.write_states(self.states)
        self.sent = ends
        self.under_way.set()
        if self.clock:
            self.clock.sent()
            self.clock.tick()  # for the next batch, which begins at once

    def write_states(self, states: States) -> None:
        """Write to the store what has changed, an interval after the last time."""
        # After a slow batch Spark begins the next one on time, which is too soon.
        due_s = self.stored_s + self.interval_ms / 1000
        self.hurry.wait(max(0.0, due_s - time.monotonic()))
        states.write()
        self.stored_s = time.monotonic()

    def take_over(self, after: Positions) -> None:
        """Send the rows that were held back and that the other cluster has not sent.

        `after` is where the other cluster has ended. From now on nothing is held back.
        """
        with self.lock:
            rows = self.standby.let_go(after, self.held_from)
            if self.sent:
                self.writer.write(rows, self.sent, self.token)

    def emitted_through(self) -> Positions:
        """Return where the last batch that was sent ends."""
        return self.sent or self.checkpoint.finished()

    def watch(self) -> None:
        """Look for the end of the query once; commit and tick in between.

        Raises:
            Failed: The failure that the query died of.
        """
        try:
            look_at(self.stream)
            self.settle()
            if self.clock and not self.stream.status["isDataAvailable"]:
                self.clock.tick()
        except StreamingQueryException as error:
            if self.is_closing:
                return
            failure = self.failure or failure_of(str(error))
            if self.failure or failure.kind != "fenced" or not self.writer.exactly_once:
                raise failure from error
            # A zombie woke up and wrote into the checkpoint. The instance that can still commit
            # owns the checkpoint, and opens it again.
            self.writer.commit(self.checkpoint.finished(), self.token)
            self.begin()

    def settle(self) -> None:
        """Under at_least_once, commit the offsets of the batches that Spark has finished.

        A crash repeats only records above them.
        """
        if self.writer.exactly_once or self.sent == self.settled:
            return
        if (finished := self.checkpoint.finished()) != self.settled:
            self.writer.commit(finished, self.token)
            self.settled = finished

    def end(self) -> None:
        """End the query.

        Records that wait are let go first. The batch under way finishes and is logged, and no other
        batch begins.
        """
        until = time.monotonic() + CLOSE_DEADLINE_S
        if self.clock and not self.failure:
            self.close_clock(self.clock, until)
        self.hurry.set()
        with self.lock:
            self.is_closing = True
        # The next batch, if it has begun, is refused.
        with contextlib.suppress(StreamingQueryException):
            while (
                self.sent and self.sent != self.checkpoint.finished() and time.monotonic() < until
            ):
                look_at(self.stream)
        self.stream.stop()
        self.settle()

    def close_clock(self, clock: Clock, until: float) -> None:
        """Ask for the closing tick, and wait until its batch is out, at most until then."""
        clock.tick(closing=True)
        while (
            (clock.under_way or not clock.is_closed)
            and self.stream.isActive
            and time.monotonic() < until
        ):
            time.sleep(LOOK_S)
