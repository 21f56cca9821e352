"""A clock that is input: each tick is a file beside the checkpoint.

There is one tick in an interval while something waits. While nothing waits there are no ticks and
no batches. Spark logs which files a batch reads, so a batch that runs again has the ticks it had.
The monotonic clock says when they are due, so a jump of the wall clock changes nothing.

A tick is as old as the batch before the one that reads it. So no tick is written while a batch is
under way, but at its end. A tick comes as long before its rows are due as the last ones took to be
out. Otherwise each would come a batch too late.
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
    """Ticks for one query, while one of its pages says that something waits."""

    def __init__(self, location: str, pages: int, interval_ms: int) -> None:
        self.location = location
        self.pages = pages
        self.interval_s = interval_ms / 1000
        self.files, self.root = fs.FileSystem.from_uri(location)
        self.files.create_dir(self.root)
        # page -> whether something waits there; none is known after a start
        self.waits: dict[bytes, bool] = {}
        self.since = time.monotonic()  # of what waits
        self.last = self.since  # of the last tick
        self.took_s = deque([LEAD_S], maxlen=3)
        self.lock = threading.Lock()
        self.under_way = False  # a tick is written, and its batch is not out
        self.was_in_it = False  # a tick was in the last batch
        self.is_closing = False
        self.is_closed = False

    def ticks(self, session: SparkSession) -> DataFrame:
        """Return the ticks as a stream of rows without meaning."""
        return session.readStream.format("text").option("cleanSource", "delete").load(self.location)

    def tick(self, *, closing: bool = False) -> None:
        """Write a tick, if one is due and none is under way.

        After the closing one is asked for, it is the next and the last.
        """
        with self.lock:
            self.is_closing |= closing
            now = time.monotonic()
            lead_s = min(*self.took_s, self.interval_s / 2)
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
            self.last = now
            self.under_way = True
            self.is_closed = self.is_closing

    def hear(self, table: pa.Table, began: float) -> pa.Table:
        """Take out the rows in which the pages say what waits: those with no key.

        A tick makes all of them speak. Events that wait now and did not before have waited since
        this batch began, or longer. `began` is that moment, by the monotonic clock.
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
        """Note that a batch is out.

        If a tick was in it, the next one is an interval away.
        """
        with self.lock:
            if self.was_in_it:
                self.since = time.monotonic()
                if self.under_way:  # it is not, where a batch runs again after a start
                    self.took_s.append(self.since - self.last)
                self.under_way = False
