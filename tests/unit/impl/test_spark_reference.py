"""The folds of the reference design, on batches without a Spark session.

Some tests need a session, which alone can read what they ask for.
"""

import json
import os
import random
import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from upheld.adapter import Failed
from upheld.generators.envelope_pb2 import Envelope, Hop, Posting
from upheld.impl.spark import (
    batcher,
    branches,
    clock,
    dead_letters,
    design,
    envelopes,
    failures,
    joins,
    ledger,
    main,
    relay,
)
from upheld.impl.spark.checkpoint import Checkpoint
from upheld.impl.spark.session import JVM, open_session
from upheld.impl.spark.writer import Writer

HUGE = 2**53 + 1


def entry(
    offset: int, *postings: tuple[str, int], chain: tuple[Hop, ...] = ()
) -> tuple[int, Envelope]:
    """Make an entry that was read at an offset."""
    return offset, Envelope(
        id=f"entry-{offset}",
        chain=chain,
        postings=[Posting(account=a, amount_cents=c) for a, c in postings],
    )


def batch(entries: list[tuple[int, Envelope]], **columns: object) -> pa.RecordBatch:
    """Return what Spark hands over: one partition's records in their order."""
    count = len(entries)
    fields = {
        "key": pa.array([b"branch"] * count, pa.binary()),
        "value": pa.array([envelope.SerializeToString() for _, envelope in entries], pa.binary()),
        "headers": pa.array(
            [None] * count, pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))
        ),
        "topic": pa.array(["entries"] * count, pa.string()),
        "partition": pa.array([3] * count, pa.int32()),
        "offset": pa.array([offset for offset, _ in entries], pa.int64()),
        "topic_id": pa.array([b""] * count, pa.binary()),
        "timestamp_ms": pa.array([1000 + offset for offset, _ in entries], pa.int64()),
    }
    return pa.RecordBatch.from_pydict(fields | columns)


def fold(
    *batches: pa.RecordBatch, accounts: dict[str, list[object]] | None = None
) -> dict[str, list[object]]:
    """Fold batches into the accounts of one page, as a shuffle might order them."""
    accounts = {} if accounts is None else accounts
    runs = [
        tuple(row.values())
        for out in ledger.fold_into_runs(iter(batches))
        for row in out.to_pylist()
    ]
    random.Random(1).shuffle(runs)
    for run in sorted(runs):
        ledger.apply(accounts, run)
    return accounts


def upstream(offset: int, topic: str = "upstream", topic_id: bytes = b"") -> tuple[Hop, ...]:
    """Return a chain of one hop."""
    return (Hop(topic=topic, partition=1, offset=offset, topic_id=topic_id),)


def test_collection():
    """An account that occurs twice in an entry is changed once, under one offset."""
    assert fold(batch([entry(7, ("a", 5), ("b", HUGE), ("a", -2))])) == {
        "a": [3, 2, "entries", 3, 7, ""],
        "b": [HUGE, 1, "entries", 3, 7, ""],
    }


def test_no_postings():
    """Entries without postings make no run."""
    assert fold(batch([entry(1), entry(2)])) == {}
    assert fold(batch([])) == {}


@pytest.mark.parametrize("cut", range(1, 6))
def test_partly_known_run(cut):
    """Of a run that replays what is known and goes on, only what is new counts."""
    entries = [entry(n, ("a", 10**n), ("b", 1)) for n in range(6)]
    accounts = fold(batch(entries[:cut]))

    assert fold(batch(entries), accounts=accounts) == {
        "a": [111111, 6, "entries", 3, 5, ""],
        "b": [6, 6, "entries", 3, 5, ""],
    }


def test_step_back_inside_a_batch():
    """A record that an upstream relay repeats is a duplicate, also inside one batch."""
    hops = [0, 1, 2, 1, 2, 3]
    entries = [entry(n, ("a", 1), chain=upstream(hop)) for n, hop in enumerate(hops)]

    assert fold(batch(entries)) == {"a": [4, 4, "upstream", 1, 3, ""]}


def test_first_hop_moves():
    """Another topic or topic id starts over, and coming back starts over again."""
    entries = [
        entry(0, ("a", 1), chain=upstream(50)),
        entry(1, ("a", 1), chain=upstream(0, "renamed")),
        entry(2, ("a", 1), chain=upstream(50)),
        entry(3, ("a", 1), chain=upstream(1, topic_id=b"\x01")),
        entry(4, ("a", 1), chain=upstream(1, topic_id=b"\x01")),
    ]

    assert fold(batch(entries)) == {"a": [4, 4, "upstream", 1, 1, "01"]}


def test_lineage():
    """A run carries the id, the timestamp and the chain of its last entry.

    The chain ends at the position that the entry was read from last.
    """
    (runs,) = ledger.fold_into_runs(
        iter(
            [batch([entry(4, ("a", 1), chain=upstream(8)), entry(5, ("a", 1), chain=upstream(9))])]
        )
    )
    run = runs.to_pylist()[0]
    chain = Envelope(chain=[*upstream(9), Hop(topic="entries", partition=3, offset=5)])

    assert (run["id"], run["timestamp_ms"], run["chain"]) == (
        "entry-5",
        1005,
        chain.SerializeToString(),
    )


def test_two_stages():
    """Each stage takes what it has not stored yet, whichever the crash left behind.

    The last stage is stored first.
    """
    stored, written = {"totals": {}, "balances": {}}, []

    class Memory:
        def rows(self, stage):
            return stored[stage]

        def write(self, stage, rows):
            written.append(stage)
            stored[stage] = stored[stage] | rows

    def batch_of(*entries):
        runs = pa.Table.from_batches(branches.fold_into_runs(iter([batch(list(entries))])))
        design = branches.Stored(Memory())
        rows = [
            (row["role"], row["key"].decode(), json.loads(row["value"]))
            for row in design.apply(runs).to_pylist()
        ]
        design.write()
        return [(role, key, row["balance_cents"], row["postings"]) for role, key, row in rows]

    first, second = entry(7, ("a", 5), ("b", -2)), entry(8, ("a", 1))
    assert batch_of(first) == [
        ("totals", "branch", 3, 2),
        ("balances", "a", 5, 1),
        ("balances", "b", -2, 1),
    ]
    before = dict(stored)
    assert batch_of(first, second) == [("totals", "branch", 4, 3), ("balances", "a", 6, 2)]
    assert written == ["totals", "balances"] * 2
    stored["balances"] = before["balances"]
    assert batch_of(first, second) == [("balances", "a", 6, 2)]
    assert json.loads(stored["balances"]["a"])["balance_cents"] == 6
    stored["totals"] = before["totals"]
    assert batch_of(first, second) == [("totals", "branch", 4, 3)]


def checkpoint_of(folder, *, finished=True):
    """Write a checkpoint as Spark leaves it: one batch, in two topics."""
    (folder / "offsets").mkdir()
    (folder / "commits").mkdir()
    ends = json.dumps({"a": {"0": 5, "1": 7}, "b": {"0": 9}})
    (folder / "offsets" / "0").write_text(f"v1\n{{}}\n{ends}\n-")
    (folder / "offsets" / ".0.crc").touch()
    if finished:
        (folder / "commits" / "0").write_text("v1\n{}")
    return Checkpoint(f"file://{folder}")


def test_a_topic_made_anew(tmp_path):
    """It is read from its beginning once, and the other one from where it was."""
    checkpoint = checkpoint_of(tmp_path)
    checkpoint.compare({"a": b"1", "b": b"1"})
    assert checkpoint.finished() == {("a", 0): 5, ("a", 1): 7, ("b", 0): 9}

    checkpoint.compare({"a": b"2", "b": b"1"})
    assert checkpoint.finished() == {("a", 0): 0, ("a", 1): 0, ("b", 0): 9}
    # A clock's end stays.
    assert (tmp_path / "offsets" / "0").read_text().splitlines()[::3] == [
        "v1",
        "-",
    ]
    assert not (tmp_path / "offsets" / ".0.crc").exists()

    (tmp_path / "offsets" / "0").write_text("v1\n{}\n" + json.dumps({"a": {"0": 3}}))
    checkpoint.compare({"a": b"2", "b": b"1"})
    assert checkpoint.finished() == {("a", 0): 3}


def test_a_topic_made_anew_under_a_batch(tmp_path):
    """Nobody knows what of that is out, so it stops loudly."""
    checkpoint = checkpoint_of(tmp_path, finished=False)
    checkpoint.compare({"a": b"1"})

    with pytest.raises(Failed, match="was deleted while batch 0 was under way"):
        checkpoint.compare({"a": b"2"})


@pytest.mark.parametrize("torn", ["", "v1\n{}", 'v1\n{}\n{"a": {"0"'])
def test_a_torn_log(tmp_path, torn):
    """Half a file is no end of a batch, and its name is said."""
    checkpoint = checkpoint_of(tmp_path)
    (tmp_path / "offsets" / "0").write_text(torn)

    with pytest.raises(Failed, match="offsets/0 is torn"):
        checkpoint.finished()


def test_output():
    """A row is integers only, and its key is the account."""
    row = ledger.output("a", [HUGE, 2, "t", 0, 9, ""], ("x", b"chain", 5))

    assert (row.key, row.timestamp_ms) == (b"a", 5)
    assert [tuple(header) for header in row.headers] == [("id", b"x"), ("chain", b"chain")]
    assert json.loads(row.value) == {
        "account": "a",
        "balance_cents": HUGE,
        "postings": 2,
        "applied": {"topic": "t", "partition": 0, "offset": 9},
    }


def test_relay():
    """The relay appends its hop and keeps the rest."""
    read = entry(6, ("a", 1), chain=upstream(2))
    (out,) = relay.append_hop(iter([batch([read])]))
    expected = Envelope.FromString(read[1].SerializeToString())
    expected.chain.append(Hop(topic="entries", partition=3, offset=6))

    assert Envelope.FromString(out["value"][0].as_py()) == expected
    assert (out["key"].to_pylist(), out["timestamp_ms"].to_pylist()) == ([b"branch"], [1006])


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("key", None, "has no key"),
        ("value", None, "has no value"),
        ("value", b"\xff", "holds no envelope"),
    ],
)
def test_poison(column, value, reason):
    """A record that cannot be read is named."""

    def poisoned() -> Iterator[pa.RecordBatch]:
        yield batch(
            [entry(1, ("a", 1)), entry(2, ("a", 1))],
            **{column: pa.array([b"", value], pa.binary())},
        )

    with pytest.raises(ValueError, match=rf"poison: entries-3@2 {reason}"):
        list(ledger.fold_into_runs(poisoned()))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--checkpoint x", "the following arguments are required: --bootstrap"),
        ("--bootstrap x --checkpoint y --client secret", "argument --client: expected NAME=VALUE"),
        ("--bootstrap x --checkpoint y --mode twice", "argument --mode: invalid choice: 'twice'"),
    ],
)
def test_bad_command_line(arguments, says, capsys):
    """One sentence and exit 4, and no value that may be a secret."""
    with pytest.raises(SystemExit) as ended:
        main.start(arguments.split())

    said = capsys.readouterr().err
    assert ended.value.code == 4
    assert says in said
    assert said.count("\n") == 1
    assert "secret" not in said


@pytest.mark.parametrize(
    ("arguments", "topics"),
    [
        ("--reads in", {"entries": "in", "balances": "balances"}),
        (
            "--program clients --beside b",
            {"client-positions": "client-positions", "client-details": "b", "joined": "joined"},
        ),
        (
            "--program tickers --writes c",
            {"positions": "positions", "tickers": "tickers", "joined": "c"},
        ),
    ],
)
def test_topics_of_the_command_line(arguments, topics):
    """A topic that is not named has the name of its role."""
    said = main.start(["--bootstrap", "x", "--checkpoint", "y", *arguments.split()])
    Path(said["state_dir"]).rmdir()

    assert said["topics"] == topics


def batches(rows):
    """Return customer and visitors of every batch."""
    values = [json.loads(row.value) for row in rows]
    return [
        (value["customerId"], "".join(event["visitorId"] for event in value["events"]))
        for value in values
    ]


def page_of(waiting):
    """Make a page of customers; return a function that says what it makes of a read.

    That is its batches, whether something waits, and what it keeps.
    """
    page, kept = batcher.Customers({"threshold": 3}), [json.dumps(waiting)]
    page.page = SimpleNamespace(
        get=lambda: kept, update=lambda value: kept.__setitem__(0, value[0])
    )

    def said(*rows):
        *out, last = page.handleInputRows((7,), iter([(7, *row) for row in rows]), None)
        return batches(out), last.value, json.loads(kept[0])

    return said


TICK = (batcher.TICK, 0, "", "", "")


def test_batches_fill():
    """Of seven events in one read, two full batches go at once, in log order.

    The rest waits for a tick.
    """
    said = page_of({"ada": [["z", "click"]]})
    events = [(0, offset, "ada", letter, "click") for offset, letter in enumerate("abcdef")] + [
        (1, 0, "bob", "x", "click")
    ]

    full = [("ada", "zab"), ("ada", "cde")]
    assert said(*reversed(events)) == (
        full,
        b"7 waits",
        {"ada": [["f", "click"]], "bob": [["x", "click"]]},
    )
    assert said(TICK) == ([("ada", "f"), ("bob", "x")], b"7 sent", {})
    assert said(TICK, *events[:3]) == ([("ada", "abc")], b"7 sent", {})
    assert said(*events[:3]) == ([("ada", "abc")], b"7 idle", {})
    assert said(*events[:2], TICK, TICK) == ([("ada", "ab")], b"7 sent", {})


def test_clock(tmp_path, monkeypatch):
    """It ticks while something waits or may, and once to close.

    A tick comes an interval after the last was out, less what a batch takes.
    """
    now = [100.0]
    monkeypatch.setattr("upheld.impl.spark.clock.time.monotonic", lambda: now[0])
    ticking = clock.Clock(f"file://{tmp_path}", 2, 1000)

    def after(seconds):
        """How many ticks there are when it was asked for one that much later."""
        now[0] += seconds
        ticking.tick()
        return len(list(tmp_path.iterdir()))

    def hear(*said, took_s=0.0):
        now[0] += took_s
        rows = {"key": [None] * len(said) + [b"ada"], "value": [*said, b"{}"]}
        table = pa.table(rows, schema=pa.schema([("key", pa.binary()), ("value", pa.binary())]))
        assert ticking.hear(table, now[0] - took_s).num_rows == 1
        ticking.sent()

    assert (after(0.7), after(0.1), after(9)) == (0, 1, 1)  # one is under way
    hear(b"0 sent", b"1 sent", took_s=0.25)
    assert after(9) == 1  # nothing waits
    hear(b"0 waits", took_s=0.1)
    # Half a second after its batch began, and not since the last tick.
    assert (after(0.39), after(0.02)) == (
        1,
        2,
    )
    hear(b"0 waits", b"1 waits")  # so large a batch is no tick
    assert after(9) == 2
    for _ in range(3):  # as long as a batch takes now, so much sooner its tick
        hear(b"0 sent", b"1 sent", took_s=0.4)
        hear(b"1 waits")
        after(0.9)
    hear(b"0 sent", b"1 sent", took_s=0.4)
    hear(b"1 waits")
    ticks = after(0.34)
    assert (after(0.02), after(9)) == (ticks + 1, ticks + 1)
    ticking.tick(closing=True)
    assert after(9) == ticks + 1  # one is under way; the closing one is the next and the last
    hear(b"0 sent", b"1 sent")
    ticking.tick(closing=True)
    hear(b"0 sent", b"1 sent")
    hear(b"0 waits")
    assert after(9) == ticks + 2


Page = dict[str, Any]


def turn(
    pages: list[Page], how: Any, said: list[tuple[Any, ...]], key: Callable[..., str]
) -> list[tuple[Any, ...]]:
    """Return what pages make of a batch that comes to them in any order."""
    said = random.Random(len(said)).sample(said, len(said))
    by_page = [
        [each for each in said if hash(key(*each)) % len(pages) == number]
        for number in range(len(pages))
    ]
    return [result for page, each in zip(pages, by_page, strict=True) for result in how(page, each)]


class Holdings:
    """Both kinds of pages, and the results that they have sent."""

    def __init__(self) -> None:
        self.followers: list[Page] = [{}, {}, {}]
        self.tickers: list[Page] = [{}, {}, {}]
        self.offset = 0

    def batch(self, *changes: tuple[str, str | None]) -> dict[str, str | None]:
        """Return the results of one batch, as `left+right`.

        A change is a position or TICKER, and what it refers to, or its new row, or None.
        """
        said: list[tuple[Any, ...]] = []
        for name, value in changes:
            self.offset += 1
            row = None if value is None else f"{name}={value}"
            refers_to = None if name.isupper() or not value else value
            said.append(
                (
                    self.offset,
                    name.isupper(),
                    name,
                    row,
                    f"{name}@{self.offset}",
                    self.offset,
                    refers_to,
                )
            )
        told = turn(self.followers, joins.follow, said, lambda _offset, _is_right, name, *_: name)
        results = turn(
            self.tickers, joins.notify, told, lambda ticker, position, *_: ticker or position
        )
        sent = {name: row and f"{row}+{partner}" for name, row, _, _, partner, _ in results}
        assert len(sent) == len(results)  # a key has one result in a batch, or none
        return sent


def test_holdings_move():
    """A row that moves is found by the new ticker only.

    Other changes of the batch do not matter.
    """
    holdings = Holdings()

    assert holdings.batch(("a", "X"), ("b", "X"), ("c", "")) == {
        "a": "a=X+None",
        "b": "b=X+None",
        "c": "c=+None",
    }
    assert holdings.batch(("X", "1"), ("Y", "1")) == {"a": "a=X+X=1", "b": "b=X+X=1"}
    assert holdings.batch(("X", "2"), ("a", "Y")) == {"a": "a=Y+Y=1", "b": "b=X+X=2"}
    assert holdings.batch(("X", "3"), ("c", "X")) == {"b": "b=X+X=3", "c": "c=X+X=3"}
    assert holdings.batch(("X", None), ("c", "")) == {"b": "b=X+None", "c": "c=+None"}
    assert holdings.batch(("X", None), ("Z", None), ("Y", "2"), ("Y", "1")) == {"a": "a=Y+Y=1"}


def test_holdings_go():
    """A visible row that goes leaves one tombstone, and nothing of it is kept."""
    holdings = Holdings()

    assert holdings.batch(("a", "X"), ("a", None), ("b", None), ("c", "X"), ("d", "")) == {
        "c": "c=X+None",
        "d": "d=+None",
    }
    assert holdings.batch(("c", None), ("X", "1"), ("d", None)) == {"c": None, "d": None}
    assert holdings.batch(("c", None), ("X", "2")) == {}
    assert holdings.batch(("a", "X"), ("c", "Y")) == {"a": "a=X+X=2", "c": "c=Y+None"}
    assert holdings.batch(("a", None), ("a", "Y"), ("c", "X"), ("c", None)) == {
        "a": "a=Y+None",
        "c": None,
    }
    assert holdings.batch(("a", None), ("X", None)) == {"a": None}
    assert holdings.followers == holdings.tickers == [{}, {}, {}]


def test_holdings_converge():
    """After many batches the last results are the join of the last rows."""
    holdings, any_of = Holdings(), random.Random(3)
    last: dict[str, str | None] = {}
    shown: dict[str, str | None] = {}
    for _ in range(300):
        changes: list[tuple[str, str | None]] = [
            (any_of.choice("abcdefgh"), any_of.choice([None, "", *"VWXYZ"]))
            if any_of.random() < 0.7
            else (any_of.choice("VWXYZ"), any_of.choice([None, str(any_of.random())]))
            for _ in range(any_of.randint(1, 6))
        ]
        last |= dict(changes)
        sent = holdings.batch(*changes)
        assert all(shown.get(name) for name, result in sent.items() if result is None)
        shown |= sent
        for name in "abcdefgh":
            ticker = last.get(name)
            partner = last.get(ticker) if ticker else None
            row = None if partner is None else f"{ticker}={partner}"
            assert shown.get(name) == (None if ticker is None else f"{name}={ticker}+{row}")


def test_clients():
    """Two sides make a result; a deletion of either leaves a tombstone for it.

    Nothing is kept of both.
    """
    page: Page = {}

    def batch(*changes: tuple[int, str, str | None]) -> list[tuple[Any, ...]]:
        said = [
            (offset, bool(is_right), name, row, "@", 5, None)
            for offset, (is_right, name, row) in enumerate(changes)
        ]
        return [
            (name, row, partner) for name, row, *_, partner, _ in joins.match(page, reversed(said))
        ]

    assert batch((0, "a", "1"), (1, "b", "x"), (1, "c", None)) == []
    assert batch((1, "a", "y"), (1, "a", "x"), (0, "b", "1"), (0, "b", None)) == [("a", "1", "x")]
    assert batch((0, "a", "2"), (1, "a", "z"), (0, "b", "2")) == [("a", "2", "z"), ("b", "2", "x")]
    assert batch((1, "a", None), (0, "a", "3"), (0, "b", None), (0, "b", "3")) == [
        ("a", None, None),
        ("b", "3", "x"),
    ]
    assert batch((1, "a", None), (0, "a", None), (0, "b", None)) == [("b", None, None)]
    assert batch((1, "b", None)) == []
    assert page == {}


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    """Open a session for these tests alone.

    Nothing of it stays in the environment, where a design would find it.
    """
    with mock.patch.dict(os.environ):
        # It lives too briefly for more.
        session = open_session("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
        yield session
        session.stop()
    for jvm in JVM:
        jvm.communicate()


def records(session: SparkSession, topic: str, *rows: tuple[Any, Any]) -> DataFrame:
    """Make records of a topic of keys and values.

    Bytes stay as they are, and all else becomes JSON.
    """
    schema = (
        "key binary, value binary, topic string, partition int, offset bigint, timestamp_ms "
        "bigint, topic_id binary"
    )
    values = [
        (
            key,
            value if isinstance(value, bytes | None) else json.dumps(value).encode(),
            topic,
            3,
            offset,
            1000 + offset,
            b"",
        )
        for offset, (key, value) in enumerate(rows)
    ]
    return session.createDataFrame(values, schema).coalesce(1)


ROLES = {
    role: f"app-{role}" for role in ("positions", "tickers", "client-positions", "client-details")
}
GOOD = {
    "positionId": "a",
    "client": '7 \u0000"é😀',
    "ticker": None,
    "amount": 2**63 - 1,
    "more": [{"b": 1.5}],
}
VOD = {"ticker": "VOD", "exchange": "LON", "name": "true", "founded": 1991}


def rows_of(session: SparkSession, table: joins.Table, values: list[object]) -> list[bool]:
    """Whether each of these values is a row under the key `a`."""
    read = records(session, "any", *((b"a", value) for value in values)).withColumn(
        "name", sf.lit("a")
    )
    found = read.withColumn(table.role, sf.expr(table.read)).selectExpr(
        f"coalesce({table.is_row}, false) as is_row"
    )
    return [row.is_row for row in found.collect()]


def test_rows(session):
    """A value that is no row is found, and so is a row of another key."""
    text = json.dumps(GOOD).encode()
    good = [
        GOOD,
        GOOD | {"ticker": "VOD"},
        GOOD | {"client": "true"},
        GOOD | {"client": "[1]"},
        b"\n" + text + b" ",
    ]
    bad = [
        *(
            text[:-1],
            text + b" more",
            text + b"}",
            text.replace(b'"', b"'"),
            text.replace(b"7", b"\xff"),
            b"null",
            b"",
        ),
        *([GOOD], "text", 5, {}, GOOD | {"positionId": "b"}),
        *(GOOD | {"amount": wrong} for wrong in ("5", 5.5, 5.0, 2**63, True, None, [])),
        *(GOOD | {"client": wrong} for wrong in (7, -7.5, True, False, None, [], {}, float("nan"))),
        *(GOOD | {"ticker": wrong} for wrong in (7, False, ["VOD"])),
        *(
            {name: value for name, value in GOOD.items() if name != missing}
            for missing in list(GOOD)[:4]
        ),
    ]
    lists = [[], [1, -(2**63)], "12", [1, None], [1, "2"], [1.0], [2**63], [[1]], None, {}]

    assert rows_of(session, joins.POSITIONS, [*good, *bad]) == [True] * len(good) + [False] * len(
        bad
    )
    assert (
        rows_of(session, joins.HELD, [{"client": "a", "positions": each} for each in lists])
        == [True] * 2 + [False] * 8
    )


@pytest.mark.parametrize("record", [(None, GOOD), (None, None), (b"a", GOOD | {"amount": "5"})])
def test_no_row(session, record):
    """A value that is no row, or has no key, is named and stops the query."""
    read = records(session, "app-positions", (b"a", GOOD), record)

    with pytest.raises(PySparkException, match="poison: app-positions-3@1 ") as stopped:
        joins.changes(read, ROLES, joins.POSITIONS, joins.TICKERS, "ticker").collect()
    assert failures.failure_of(str(stopped.value)).kind == "poison"


JSON = (
    b'{"id": "0a183235363930343432343636313535342d302d3031353631311085f4a48de13122110a0b'
    b'6c657769732d3035313831108cd50b"}'
)


def test_what_cannot_be_read_is_found_by_halves():
    """Wherever it lies among others, each with its own reason.

    A value that Protobuf refuses and the codec takes is among them.
    """
    good = Envelope(id="a").SerializeToString()
    read = [
        *(
            (b"a", good, None),
            (None, good, "has no key"),
            (b"a", b"\xff", "holds no envelope"),
            (b"a", b"", None),
        ),
        *(
            (b"a", None, "has no value"),
            (b"a", JSON, "holds no envelope"),
            (b"a", b"\x78\x05" + good, None),
        ),
    ]
    for turn in range(len(read)):
        keys, values, whys = zip(*read[turn:], *read[:turn], strict=True)
        found = envelopes.flaws(
            pa.array(keys, pa.binary()), pa.array(values, pa.binary())
        ).to_pylist()
        assert tuple(why and why.partition(":")[0] for why in found) == whys


def test_dead_letters(session, tmp_path):
    """A stream parts in two and is one query again, on one source.

    A letter has its record's headers, and where it was read.
    """
    good = relay.MADE_UP
    rows = (b"a", good), (b"b", b"\xff"), (None, good), (b"c", None)
    headers = (
        "case when offset = 1 then array(struct('offset' as key, cast(null as binary) as value)) "
        "end as headers"
    )
    records(session, "app-input", *rows).selectExpr("*", headers).write.parquet(f"{tmp_path}/in")
    schema = session.read.parquet(f"{tmp_path}/in").schema
    readable, letters = dead_letters.split(
        session.readStream.schema(schema).parquet(f"{tmp_path}/in")
    )
    out = []
    query = (
        dead_letters.beside(relay.build(readable), "output", letters)
        .writeStream.foreachBatch(lambda rows, _: out.extend(rows.collect()))
        .option("checkpointLocation", f"{tmp_path}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()

    assert len(query.lastProgress["sources"]) == 1
    assert [(row.role, row.key, row.timestamp_ms) for row in out if row.role == "output"] == [
        ("output", b"a", 1000)
    ]
    where = [("topic", b"app-input"), ("partition", b"3"), ("offset", b"1")]
    by_offset = {
        dict(map(tuple, row.headers))["offset"]: row for row in out if row.role == dead_letters.ROLE
    }
    assert {offset: (row.key, row.value) for offset, row in by_offset.items()} == {
        str(offset).encode(): rows[offset] for offset in (1, 2, 3)
    }
    own, reason, *rest = map(tuple, by_offset[b"1"].headers)
    assert (own, reason[0], rest) == (("offset", None), "reason", where)
    assert [tuple(header) for header in by_offset[b"2"].headers][:2] == [
        ("reason", b"has no key"),
        where[0],
    ]


def test_a_quoted_plan_is_no_poison():
    """The cause of a dead query is not what its plan would have said of a record."""
    plan = (
        "+- Project [raise_error(concat_ws(, poison: , topic#13, -, cast(partition#14 as string), "
        "@, offset#15L))]"
    )
    died = failures.failure_of(f"TimeoutException: Timeout of 60000ms expired\n{plan}")

    assert (died.kind, str(died)) == ("storage", "TimeoutException: Timeout of 60000ms expired")


def test_broadcast(session):
    """Each position comes in order with the last row of its ticker, or a tombstone.

    There is no shuffle.
    """
    names = ["VOD", None, "gone", "unknown", "VOD"]
    rows = [
        (str(number).encode(), GOOD | {"positionId": str(number), "ticker": name})
        for number, name in enumerate(names)
    ]
    left = records(session, "app-positions", *rows, (b"4", None), (b"\xff", None))
    gone = (b"gone", VOD | {"ticker": "gone"}), (b"gone", None)
    right = records(session, "app-tickers", (b"VOD", VOD | {"founded": 1}), *gone, (b"VOD", VOD))
    out = joins.JOINS["tickers"].build(left, right, {"topics": ROLES})
    results = out.collect()

    assert [(row.key, row.timestamp_ms) for row in results] == [
        (b"%d" % min(n, 4), 1000 + n) for n in range(6)
    ]
    assert [row.value is None for row in results] == [False, True, True, True, False, True]
    assert json.loads(results[4].value) == {
        "left": {name: value for name, value in rows[4][1].items() if name != "more"},
        "right": VOD,
        "from": {"left": "positions-3@4", "right": "tickers-3@3"},
    }
    plan = out._jdf.queryExecution().executedPlan().toString()
    assert "BroadcastHashJoin" in plan
    assert not re.search(r"(?<!Broadcast)Exchange", plan)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"commit_interval_ms": 0}, "commit_interval_ms is 0, and must be 1 or more"),
        ({"threshold": -1, "interval_ms": 5}, "threshold is -1, and must be 1 or more"),
        ({"delete_retention_ms": -1}, "delete_retention_ms is -1, and must be 0 or more"),
    ],
)
def test_absurd_parameters(parameters, says):
    """They are refused before anything is opened, in one sentence."""
    with pytest.raises(Failed, match=f"^{says}$"):
        design.Spark().open({"program": "holdings", "parameters": parameters})


class LettingGo:
    """A producer whose client lets go of the coordinator's connection.

    It does so a number of times, while offsets are on their way.
    """

    def __init__(self, times: int) -> None:
        self.times, self.calls = times, list[str]()

    def __getattr__(self, name: str) -> Callable[..., None]:
        def call(*_: object) -> None:
            self.calls.append(name)
            if name == "send_offsets_to_transaction" and self.calls.count(name) <= self.times:
                raise KafkaException(KafkaError(KafkaError._DESTROY_BROKER))

        return call


@pytest.mark.parametrize(("times", "begun", "committed"), [(0, 1, 1), (1, 2, 1), (2, 2, 0)])
def test_a_transaction_whose_connection_the_client_let_go_of(
    times: int, begun: int, committed: int
) -> None:
    """It is aborted and sent once more.

    A second time is an orderly failure, which leaves none open.
    """
    producer = LettingGo(times)
    group = SimpleNamespace(consumer_group_metadata=lambda: None)
    mine = SimpleNamespace(producer=producer, offsets=group, exactly_once=True, refused=None)
    mine.topic = "outputs"
    for name in ("_write", "_failed"):
        setattr(mine, name, partial(getattr(Writer, name), mine))

    with nullcontext() if committed else pytest.raises(Failed, match="_DESTROY_BROKER"):
        Writer.write(mine, None, {}, {})

    assert producer.calls.count("begin_transaction") == begun
    assert producer.calls.count("abort_transaction") == times
    assert producer.calls.count("commit_transaction") == committed
