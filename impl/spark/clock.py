"""A clock that is input: each tick is a file beside the checkpoint, one in an interval while
something waits.

Spark logs which files a batch reads, so a batch that runs again has the ticks it had; they are
written by the monotonic clock, so nobody sets it. While nothing waits there are no ticks and no
batches.

A tick is as old as the batch before the one that reads it, so none is written while one is under
way, but at its end; and as long before what it sends is due as the last ones took to be out,
because otherwise each comes a batch too late.
"""

import threading
import time
import uuid
from collections import deque

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession

LEAD_S = 0.25  # no batch is planned and run in less


class Clock:
    """Ticks for one query, as long as one of its pages says that something waits there."""

    def __init__(self, location: str, pages: int, interval_ms: int) -> None:
        self.location, self.pages, self.interval_s = location, pages, interval_ms / 1000
        self.files, self.root = fs.FileSystem.from_uri(location)
        self.files.create_dir(self.root)
        # page -> whether something waits there; none is known after a start
        self.waits: dict[bytes, bool] = {}
        self.since = self.last = time.monotonic()  # of what waits; of the last tick
        self.took_s = deque([LEAD_S], maxlen=3)
        self.lock, self.under_way, self.was_in_it, self.is_closing, self.is_closed = (
            threading.Lock(),
            *[False] * 4,
        )

    def ticks(self, session: SparkSession) -> DataFrame:
        """The ticks as a stream of rows with nothing to say."""
        return session.readStream.format("text").option("cleanSource", "delete").load(self.location)

    def tick(self, *, closing: bool = False) -> None:
        """Write a tick, if one is due and none is under way; once asked for, the closing one is the
        next and the last.
        """
        with self.lock:
            self.is_closing |= closing
            now, lead_s = time.monotonic(), min(*self.took_s, self.interval_s / 2)
            is_due = now >= self.since + self.interval_s - lead_s
            may_wait = len(self.waits) < self.pages or any(self.waits.values())
            if self.under_way or self.is_closed or not (self.is_closing or (may_wait and is_due)):
                return
            name = uuid.uuid4().hex
            with self.files.open_output_stream(
                f"{self.root}/_{name}"
            ) as file:  # to Spark such a name is no file
                file.write(b"tick")
            self.files.move(f"{self.root}/_{name}", f"{self.root}/{name}")
            self.last, self.under_way, self.is_closed = now, True, self.is_closing

    def hear(self, table: pa.Table, began: float) -> pa.Table:
        """Take out the rows in which the pages say what waits: those with no key.

        A tick makes all of them speak.

        What waits now and did not before has waited since this batch began, or longer.
        """
        said = [
            value.split() for value in table.filter(pc.is_null(table["key"]))["value"].to_pylist()
        ]
        if not any(self.waits.values()):
            self.since = began - LEAD_S
        self.waits |= {page: how == b"waits" for page, how in said}
        self.was_in_it = any(how == b"sent" for _, how in said)
        return table.filter(pc.is_valid(table["key"]))

    def sent(self) -> None:
        """The batch is out; if a tick was in it, the next one is an interval away."""
        with self.lock:
            if self.was_in_it:
                self.since = time.monotonic()
                if self.under_way:  # it is not, where a batch runs again after a start
                    self.took_s.append(self.since - self.last)
                self.under_way = False
