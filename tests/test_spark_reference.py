"""The folds of the reference design, on batches of records and without a Spark session."""

import json
import random
from collections.abc import Iterator

import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from streamgate.generators.envelope_pb2 import Envelope, Hop, Posting  # noqa: E402
from streamgate.impl.spark import batcher, clock, ledger, main, relay  # noqa: E402

HUGE = 2**53 + 1


def entry(offset: int, *postings: tuple[str, int], chain: tuple[Hop, ...] = ()) -> tuple[int, Envelope]:
    """An entry read at an offset."""
    return offset, Envelope(
        id=f"entry-{offset}", chain=chain, postings=[Posting(account=a, amount_cents=c) for a, c in postings]
    )


def batch(entries: list[tuple[int, Envelope]], **columns: object) -> pa.RecordBatch:
    """What Spark hands over: one partition's records in their order."""
    count = len(entries)
    fields = {
        "key": pa.array([b"branch"] * count, pa.binary()),
        "value": pa.array([envelope.SerializeToString() for _, envelope in entries], pa.binary()),
        "headers": pa.array([None] * count, pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))),
        "topic": pa.array(["entries"] * count, pa.string()),
        "partition": pa.array([3] * count, pa.int32()),
        "offset": pa.array([offset for offset, _ in entries], pa.int64()),
        "timestamp_ms": pa.array([1000 + offset for offset, _ in entries], pa.int64()),
    }
    return pa.RecordBatch.from_pydict(fields | columns)


def fold(*batches: pa.RecordBatch, accounts: dict[str, list[object]] | None = None) -> dict[str, list[object]]:
    """Fold batches into the accounts of one page, in an order that a shuffle might give."""
    accounts = {} if accounts is None else accounts
    runs = [tuple(row.values()) for out in ledger.fold_into_runs(iter(batches)) for row in out.to_pylist()]
    random.Random(1).shuffle(runs)
    for run in sorted(runs):
        ledger.apply(accounts, run)
    return accounts


def upstream(offset: int, topic: str = "upstream", topic_id: bytes = b"") -> tuple[Hop, ...]:
    """A chain of one hop."""
    return (Hop(topic=topic, partition=1, offset=offset, topic_id=topic_id),)


def test_collection():
    """An account that occurs twice in an entry is changed once, under the entry's one offset."""
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
    """What an upstream relay repeats is a duplicate, also inside one batch."""
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
    """A run carries the id, the timestamp and the chain of its last entry, the position it was read from last."""
    (runs,) = ledger.fold_into_runs(
        iter([batch([entry(4, ("a", 1), chain=upstream(8)), entry(5, ("a", 1), chain=upstream(9))])])
    )
    run = runs.to_pylist()[0]
    chain = Envelope(chain=[*upstream(9), Hop(topic="entries", partition=3, offset=5)])

    assert (run["id"], run["timestamp_ms"], run["chain"]) == ("entry-5", 1005, chain.SerializeToString())


def test_output():
    """A row is integers only, and its key is the account."""
    row = ledger.output("a", [HUGE, 2, "t", 0, 9, ""], "x", b"chain", 5)

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
    [("key", None, "has no key"), ("value", None, "has no value"), ("value", b"\xff", "holds no envelope")],
)
def test_poison(column, value, reason):
    """A record that cannot be read is named."""

    def poisoned() -> Iterator[pa.RecordBatch]:
        yield batch([entry(1, ("a", 1)), entry(2, ("a", 1))], **{column: pa.array([b"", value], pa.binary())})

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


def batches(rows):
    """Customer and visitors of every batch."""
    values = [json.loads(row.value) for row in rows]
    return [(value["customerId"], "".join(event["visitorId"] for event in value["events"])) for value in values]


def test_batches_fill():
    """Of seven events in one read, two full batches go at once, in order, and one event waits from the page's time."""
    state = {"now_ms": 70, "customers": {"ada": [10, [["z", "click"]]]}}
    events = [("ada", letter, "click") for letter in "abcdef"] + [("bob", "x", "click")]

    assert batches(batcher.fill(state, events, 3)) == [("ada", "zab"), ("ada", "cde")]
    assert state["customers"] == {"ada": [70, [["f", "click"]]], "bob": [70, [["x", "click"]]]}


def test_batches_are_due():
    """What has waited for the interval goes, by the page's own time, and no other."""
    state = {"now_ms": 1010, "customers": {"ada": [10, [["a", "click"]]], "bob": [11, [["b", "click"]]]}}

    assert batches(batcher.overdue(state, 1010 - 1000)) == [("ada", "a")]
    assert list(state["customers"]) == ["bob"]
    assert batches(batcher.overdue(state, 1010)) == [("bob", "b")]


def test_clock(tmp_path, monkeypatch):
    """It ticks while something waits or may, once at a time, by the time since it last did; and always to close."""
    now = [100.0]
    monkeypatch.setattr("streamgate.impl.spark.clock.time.monotonic", lambda: now[0])
    ticking = clock.Clock(f"file://{tmp_path}", 2)
    written = lambda: sorted(file.read_text() for file in tmp_path.iterdir())  # noqa: E731

    def hear(*said, took_s=0.0):
        rows = {"key": [None] * len(said) + [b"ada"], "value": [*said, b"{}"]}
        table = pa.table(rows, schema=pa.schema([("key", pa.binary()), ("value", pa.binary())]))
        assert ticking.hear(table, now[0] - took_s).num_rows == 1

    ticking.tick()
    assert written() == []  # not yet due
    now[0] += 0.3
    ticking.tick()
    now[0] += 0.3
    ticking.tick()
    assert written() == ["300 "]  # one is under way
    hear(b"0 0", b"1 0")
    ticking.tick()
    assert written() == ["300 "]  # nothing waits
    now[0] += 60
    hear(b"0 5", took_s=0.5)
    ticking.tick()
    assert written() == ["300 ", "500 "]  # an event has waited since its batch began, not since the last tick
    hear(b"0 0", b"1 0")
    ticking.tick(closing=True)
    assert written() == ["0 closing", "300 ", "500 "]
