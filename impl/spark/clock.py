"""A clock that is input: each tick is a file beside the checkpoint, with the milliseconds since the one before.

Spark logs which files a batch reads, so a batch that runs again sees the same time; the milliseconds are those of the
monotonic clock, so nobody sets it. While nothing waits there are no ticks and no batches.
A tick is as old as the batch before the one that reads it, so none is written while one is under way, but at its end.
"""

import threading
import time
import uuid

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession

LEAD_MS = 250  # no batch is planned and run in less: it begins so much sooner than what it sends is due
TICKS = 4  # in an interval
NEVER = 1 << 60  # when a batch is due on a page where nothing waits


class Clock:
    """Ticks for one query, as long as one of its pages says that something waits there."""

    def __init__(self, location: str, pages: int, interval_ms: int) -> None:
        self.location, self.pages, self.tick_ms = location, pages, interval_ms / TICKS
        self.files, self.root = fs.FileSystem.from_uri(location)
        self.files.create_dir(self.root)
        self.due_in_ms: dict[bytes, int] = {}  # page -> from the last tick on; none is known after a start
        self.last, self.under_way = time.monotonic(), False
        self.lock, self.is_closing, self.is_closed = threading.Lock(), False, False

    def ticks(self, session: SparkSession) -> DataFrame:
        """The ticks as a stream: elapsed_ms, closing."""
        files = session.readStream.format("text").option("cleanSource", "delete").load(self.location)
        elapsed_ms = "cast(split(value, ' ')[0] as bigint) as elapsed_ms"
        return files.selectExpr(elapsed_ms, "value like '%closing' as closing")

    def tick(self, *, closing: bool = False) -> None:
        """Write a tick, if one is due and none is under way; once asked for, the closing one is the next and the last."""
        with self.lock:
            self.is_closing |= closing
            now, due_ms = time.monotonic(), self.due_ms()
            elapsed_ms = round((now - self.last) * 1000)
            is_next = due_ms < 3 * self.tick_ms or due_ms == NEVER  # what is due so soon is waited for
            wait_ms = due_ms if is_next else self.tick_ms
            if self.under_way or self.is_closed or (elapsed_ms < wait_ms and not self.is_closing):
                return
            name = uuid.uuid4().hex
            with self.files.open_output_stream(f"{self.root}/_{name}") as file:  # to Spark such a name is no file
                file.write(f"{elapsed_ms} {'closing' if self.is_closing else ''}".encode())
            self.files.move(f"{self.root}/_{name}", f"{self.root}/{name}")
            self.last, self.under_way, self.is_closed = now, True, self.is_closing

    def due_ms(self) -> int:
        """How long after the last tick the next batch is due: at once where some page has not said it yet."""
        return min(self.due_in_ms.values()) if len(self.due_in_ms) == self.pages else 0

    def hear(self, table: pa.Table, began: float) -> pa.Table:
        """Take out the rows in which the pages say what waits: those with no key. A tick makes all of them speak.

        What waits now and did not before has waited since this batch began, or longer.
        """
        said = table.filter(pc.is_null(table["key"]))
        was_idle = all(due == NEVER for due in self.due_in_ms.values())
        self.due_in_ms |= {page: int(due) for page, due in (value.split() for value in said["value"].to_pylist())}
        if was_idle and not self.under_way:
            self.last = began - LEAD_MS / 1000
        if len(said) == self.pages:
            self.under_way = False
        return table.filter(pc.is_valid(table["key"]))
