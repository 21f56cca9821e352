"""clients, tickers, holdings: a table joined with a table, into `joined`.

Rows are checked, read and written in columns. Only the states pass through Python, as pages of many
keys. Batches come one after the other. In each of them a key's last record counts and one page
speaks for it, so that no result can be overtaken.

`clients` keeps both sides of a client on one page.

`tickers` looks each row up in the reference as it was at the start, without a shuffle.

`holdings` has two kinds of pages. The first follow each position, and tell the page of its ticker
that it comes, changes or goes. The second keep each ticker with its subscribers. Within a batch
they hear of all of that before they speak. So a position that has moved is found by the new ticker
only, and no deletion has to be remembered.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sf
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from upheld.impl.spark.rows import NO_HEADERS

PAGES = 256  # fixed in a checkpoint when it is made
# A change without a row is a deletion, a subscription of no position is the ticker's own row, a
# result without a row a tombstone.
CHANGE = ("offset", "is_right", "name", "row", "place", "timestamp_ms", "refers_to")
SUBSCRIPTION = ("ticker", "position", "row", "place", "timestamp_ms", "is_gone")
RESULT = ("name", "row", "place", "timestamp_ms", "partner", "partner_place")
TYPES = {"timestamp_ms": "bigint", "is_gone": "boolean"}  # of all others: string
OUTPUT = (
    "cast(name as binary) as key",
    """cast(concat('{"left":', row, ',"right":', coalesce(partner, 'null'),
    ',"from":{"left":"', place,
    '","right":', coalesce(concat('"', partner_place, '"'), 'null'), '}}') as binary) as value""",
    f"{NO_HEADERS} as headers",
    "timestamp_ms",
)
# The kind of a field -> the type that SQL reads, and a check that tells it from other kinds.
KINDS = {
    "text": ("string", "schema_of_variant({strictly}) = 'STRING'"),
    "text or null": ("string", "schema_of_variant({strictly}) in ('STRING', 'VOID')"),
    "integer": ("bigint", "{leniently} is not null"),
    "integers": ("array<bigint>", "forall({leniently}, number -> number is not null)"),
}
NO_TEXT = r"^(-?[0-9]|[\[{]|(true|false)$)"  # how all else begins that would be read as a text
TEXTS = ("positionId", "client", "ticker", "exchange", "name", "surname", "email")

Said = tuple[Any, ...]
Turn = Callable[[dict[str, Any], Iterable[Said]], Iterator[Said]]


class Step(NamedTuple):
    """A step from rows to rows, in pages of many keys."""

    takes: tuple[str, ...]
    """The columns of the rows that come."""

    turn: Turn
    """The fold of a batch into a page."""

    gives: tuple[str, ...]
    """The columns of the rows that go."""


class Table:
    """One side of a join: its role and its fields, and how SQL reads it.

    The first field is the key if the table `is_keyed`.
    """

    def __init__(self, role: str, *, is_keyed: bool = True, **fields: str) -> None:
        value = f"`{role}`.row"
        strictly = from_json(", ".join(f"{name}: variant" for name in fields))
        checks = {
            name: KINDS[kind][1].format(
                leniently=f"{value}.{name}", strictly=f"{strictly}.row.{name}"
            )
            for name, kind in fields.items()
        }
        texts = [name for name, kind in fields.items() if "text" in kind]
        are_texts = " and ".join(checks.pop(name) for name in texts)
        # The strict reading is slow.
        are_plain = " and ".join(f"{value}.{name} not rlike r'{NO_TEXT}'" for name in texts)
        is_of_key = f"{value}.{next(iter(fields))} = name" if is_keyed else "true"
        self.role = role
        self.read = from_json(
            ", ".join(f"{name}: {KINDS[kind][0]}" for name, kind in fields.items())
        )
        self.row = f"to_json({value}, map('ignoreNullFields', 'false'))"
        is_text = f"is_valid_utf8(cast(value as string)) and ({are_plain} or {are_texts})"
        self.is_row = " and ".join([f"`{role}`.end = 0", *checks.values(), is_of_key, is_text])


def from_json(fields: str) -> str:
    """Return SQL that reads a value to its very end.

    Alone, a value would be read to the end of its first JSON text.
    """
    options = "map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false')"
    text = "concat('{\"row\":', cast(value as string), ',\"end\":0}')"
    return f"from_json({text}, 'row struct<{fields}>, end int', {options})"


def changes(
    records: DataFrame, topics: dict[str, str], left: Table, right: Table, on: str
) -> DataFrame:
    """Read the rows of both topics.

    A null is a deletion. A record that is no row under its key is poison.
    """

    def either(of_left: str, of_right: str) -> str:
        return f"if(topic = '{topics[right.role]}', {of_right}, {of_left})"

    is_legal = (
        f"name is not null and (value is null or coalesce({either(left.is_row, right.is_row)}, "
        "false))"
    )
    poison = (
        "concat('poison: ', topic, '-', partition, '@', offset, ' is no row of its table under "
        "its key')"
    )
    return (
        records.withColumn("name", sf.expr("cast(key as string)"))
        # A row of another name was never there.
        .where("name is null or value is not null or is_valid_utf8(name)")
        .withColumns(
            {
                t.role: sf.expr(f"if(topic = '{topics[t.role]}', {t.read}, null)")
                for t in (left, right)
            }
        )
        .selectExpr(
            f"if({is_legal}, name, raise_error({poison})) as name",
            f"{either('false', 'true')} as is_right",
            f"if(value is null, null, {either(left.row, right.row)}) as row",
            f"concat({either(repr(left.role), repr(right.role))}, '-', partition, '@', offset) as "
            "place",
            f"`{left.role}`.row.{on} as refers_to",
            "offset",
            "timestamp_ms",
        )
    )


def tickers(positions: DataFrame, whole: DataFrame) -> DataFrame:
    """Look each position up in the reference, which is read here and now.

    The order within a partition stays.
    """
    last = whole.groupBy("name").agg(sf.max_by(sf.struct("row", "place"), "offset").alias("last"))
    rows = last.selectExpr(
        "name as refers_to", "last.row as partner", "last.place as partner_place"
    )
    reference = positions.sparkSession.createDataFrame(rows.where("partner is not null").toArrow())
    found = positions.join(sf.broadcast(reference), "refers_to", "left")
    return found.withColumn("row", sf.expr("if(partner is null, null, row)"))


def clients(sides: DataFrame) -> DataFrame:
    """Bring both sides of a client to one page."""
    return in_pages(sides, "name", Step(CHANGE, match, RESULT))


def holdings(sides: DataFrame) -> DataFrame:
    """Bring positions to the pages that follow them, and then to those of tickers."""
    subscriptions = in_pages(sides, "name", Step(CHANGE, follow, SUBSCRIPTION))
    told = Step(SUBSCRIPTION, notify, RESULT)
    return in_pages(subscriptions, "coalesce(ticker, position)", told)


def in_pages(rows: DataFrame, key: str, step: Step, pages: int = PAGES) -> DataFrame:
    """Take a step: bring rows to the pages of their keys, in no order.

    Returns the rows that the pages give.
    """
    paged = rows.selectExpr(f"pmod(hash({key}), {pages}) as page", *step.takes).groupBy("page")
    schema = ", ".join(f"{name} {TYPES.get(name, 'string')}" for name in step.gives)
    return paged.transformWithState(Pages(step.turn, step.gives), schema, "Append", "None")


class Pages(StatefulProcessor):
    """The states of a page's keys, as JSON, and the step that a batch makes of it."""

    def __init__(self, turn: Turn, gives: tuple[str, ...]) -> None:
        self.turn = turn
        self.gives = Row(*gives)

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state."""
        self.page = handle.getValueState("page", "keys string")

    def handleInputRows(
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,
    ) -> Iterator[Row]:
        """Take the page's step with the rows of a batch."""
        stored = self.page.get()
        state: dict[str, Any] = json.loads(stored[0]) if stored else {}
        for said in self.turn(state, (tuple(row)[1:] for row in rows)):
            yield self.gives(*said)
        self.page.update((json.dumps(state),))


def last(said: Iterable[Said]) -> Iterable[Said]:
    """Return the last change of each key of each side, without its offset.

    All changes of a key lie in one partition.
    """
    return {change[1:3]: change[1:] for change in sorted(said, key=itemgetter(0))}.values()


def match(page: dict[str, Any], said: Iterable[Said]) -> Iterator[Said]:
    """Take a step with the page {client: [left, right]}.

    Both sides make a result. If there was one and is none, a tombstone goes.
    """
    was_there: dict[str, bool] = {}
    for is_right, name, row, place, timestamp_ms, _ in last(said):
        sides = page.setdefault(name, [None, None])
        was_there.setdefault(name, all(sides))
        sides[is_right] = None if row is None else [row, place, timestamp_ms]
    for name, was in was_there.items():
        left, right = page[name]
        if left and right:
            yield name, *left, *right[:2]
        elif was:
            yield name, None, None, 0, None, None
        if not (left or right):
            del page[name]


def follow(page: dict[str, Any], said: Iterable[Said]) -> Iterator[Said]:
    """Take a step with the page {position: ticker}.

    The old ticker hears of a position that goes, the new one of a position that comes or changes.
    Each ticker hears of its own row.
    """
    for is_right, name, *row, ticker in last(said):
        if is_right:
            yield name, None, *row, False
            continue
        is_gone = row[0] is None
        was_there = name in page
        old = page.pop(name, None)
        if was_there and (is_gone or old not in {None, ticker}):
            yield old, name, None, None, row[2], is_gone
        if not is_gone:
            page[name] = ticker
            yield ticker, name, *row, False


def notify(page: dict[str, Any], said: Iterable[Said]) -> Iterator[Said]:
    """Take a step with the page {ticker: [its row, {position: row}]}.

    All of a batch is heard first. Then each result that it changes is sent, once.
    """
    due: dict[str, dict[str, Any]] = {}  # ticker -> the positions whose results change
    for ticker, position, *row, is_gone in said:
        # Without a ticker there is nothing to subscribe to.
        if is_gone or (position is not None and ticker is None):
            yield position, *row, None, None
        if ticker is None:
            continue
        known = page.setdefault(ticker, [None, {}])
        results = due.setdefault(ticker, {})
        if position is None:
            if row[0] is not None or known[0]:
                due[ticker] = known[1]  # all of them, and those that are still to come
            known[0] = None if row[0] is None else row
        elif row[0] is None:
            known[1].pop(position, None)
        else:
            known[1][position] = row
            results[position] = row
    for ticker, results in due.items():
        partner, subscribers = page[ticker]
        for position, row in results.items():
            yield position, *row, *(partner[:2] if partner else (None, None))
        if not (partner or subscribers):
            del page[ticker]


class Join:
    """A program: two tables, and the way from their changes to the results.

    Of a broadcast join the right table is read whole.
    """

    WRITES = "joined"
    ARROW_RECORDS = 100_000
    MADE_UP = json.dumps(
        {"positions": [1], "amount": 1, "founded": 1} | dict.fromkeys(TEXTS, "a")
    ).encode()

    def __init__(
        self,
        left: Table,
        right: Table,
        on: str,
        join: Callable[..., DataFrame],
        *,
        is_broadcast: bool = False,
    ) -> None:
        self.on = (left, right, on)
        self.join = join
        self.READS: tuple[str, ...] = (left.role,) if is_broadcast else (left.role, right.role)
        self.BESIDE: tuple[str, ...] = (right.role,) if is_broadcast else ()
        # A stop waits for the batch under way.
        self.BATCH_RECORDS = 250_000 if is_broadcast else 50_000

    def build(
        self, records: DataFrame, beside: DataFrame | None, start: dict[str, Any]
    ) -> DataFrame:
        """Read the changes, join them, and write the results."""
        inputs = [records] if beside is None else [records, beside]
        return self.join(*(changes(each, start["topics"], *self.on) for each in inputs)).selectExpr(
            *OUTPUT
        )


POSITIONS = Table(
    "positions", positionId="text", client="text", ticker="text or null", amount="integer"
)
TICKERS = Table("tickers", ticker="text", exchange="text", name="text", founded="integer")
HELD = Table("client-positions", client="text", positions="integers")
DETAILS = Table("client-details", client="text", name="text", surname="text", email="text")
JOINS = {
    "clients": Join(HELD, DETAILS, "client", clients),
    "tickers": Join(POSITIONS, TICKERS, "ticker", tickers, is_broadcast=True),
    "holdings": Join(POSITIONS, TICKERS, "ticker", holdings),
}
