import hashlib
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest

from upheld.generators import tables
from upheld.generators.envelope_pb2 import Envelope, Hop
from upheld.generators.ledger import EPOCH_MS, FLAWS, Send, facts, ledger, unreadable
from upheld.generators.pulse import names, signals
from upheld.generators.tables import Tables, spoiled, written
from upheld.history.events import Record
from upheld.programs import PROGRAMS, Unreadable
from upheld.programs.pulse import said

INT64_MAX = 2**63 - 1
VARIANTS: list[dict[str, Any]] = [
    {},
    {"republished": True},
    {"moved": True},
    {"republished": True, "moved": True},
    {"entries": 1_000, "accounts": 1_000},
]


def digest(sends: Iterable[Send]) -> str:
    """Reduce a workload to what two processes can compare."""
    return hashlib.sha256(repr(list(sends)).encode()).hexdigest()


def counted(sends: Iterable[Send]) -> list[tuple[Send, Envelope]]:
    """Leave out what is aborted."""
    return [(send, Envelope.FromString(send.value)) for send in sends if not send.aborted]


def place(hop: Hop) -> tuple[str, int, bytes]:
    """Say which partition of which topic a hop is in."""
    return hop.topic, hop.partition, hop.topic_id


def first_sightings(sends: Iterable[Send]) -> list[tuple[Send, Envelope]]:
    """Leave out what is aborted or repeated."""
    seen: dict[str, tuple[Send, Envelope]] = {}
    for send, envelope in counted(sends):
        seen.setdefault(envelope.id, (send, envelope))
    return list(seen.values())


def told(script: str, hash_seed: str) -> str:
    """What a process of its own prints."""
    own = os.environ | {"PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", script]
    return subprocess.run(
        command, env=own, capture_output=True, text=True, check=True, timeout=60
    ).stdout.strip()


def test_two_seeds_make_two_workloads() -> None:
    """The seed reaches names, amounts and times."""
    first, second = ledger(1, entries=100), ledger(2, entries=100)

    assert digest(first) != digest(second)
    assert first[0].timestamp_ms != second[0].timestamp_ms


@pytest.mark.parametrize("seed", range(3))
def test_the_default_workload_has_all_that_trips_a_design(seed: int) -> None:
    """Every awkward kind of entry occurs in every seed, and often enough to meet a fault."""
    counts = facts(ledger(seed))

    expected = {
        "entries": 4_000,
        "partitions": 4,
        "aborted_transactions": 6,
        "accounts": 64,
        "keys": 16,
    }
    assert counts | expected == counts
    assert all(
        counts[name] >= 50
        for name in (
            "postings_zero",
            "postings_negative",
            "postings_above_2_53",
            "entries_without_postings",
            "entries_twice_on_an_account",
        )
    )
    assert counts["repeated"] == counts["entries_with_chain"] == 0


def test_an_entry_has_up_to_eight_postings() -> None:
    """The smallest collection is empty, the largest has eight postings."""
    sizes = {len(envelope.postings) for _, envelope in counted(ledger(3))}

    assert set(range(9)) == sizes


@pytest.mark.parametrize("variant", VARIANTS, ids=repr)
def test_keys_stay_where_they_belong(variant: dict[str, Any]) -> None:
    """A branch has one partition, an account one branch, and all sums fit into 64 bits at every
    moment.
    """
    partition_of: defaultdict[bytes, set[int]] = defaultdict(set)
    branch_of: defaultdict[str, set[bytes]] = defaultdict(set)
    balance: defaultdict[str, int] = defaultdict(int)

    for send, envelope in counted(ledger(11, **variant)):
        partition_of[send.key].add(send.partition)
        for posting in envelope.postings:
            branch_of[posting.account].add(send.key)
            balance[posting.account] += posting.amount_cents
            assert abs(balance[posting.account]) <= INT64_MAX

    assert {1} == {len(found) for found in partition_of.values()}
    assert {1} == {len(found) for found in branch_of.values()}


@pytest.mark.parametrize("variant", VARIANTS, ids=repr)
def test_new_records_have_new_ids_and_later_times(variant: dict[str, Any]) -> None:
    """Ids are unique and times strictly rise, aborted records included; record and envelope
    agree.
    """
    sends = ledger(11, **variant)
    envelopes = {Envelope.FromString(send.value).id: send.timestamp_ms for send in sends}
    times = list(envelopes.values())

    assert sorted(set(times)) == times
    assert all(Envelope.FromString(send.value).timestamp_ms == send.timestamp_ms for send in sends)


@pytest.mark.parametrize("variant", VARIANTS, ids=repr)
def test_every_partition_ends_in_an_aborted_record(variant: dict[str, Any]) -> None:
    """The input ends in markers that a reader of committed data has to pass."""
    last = {send.partition: send for send in ledger(11, **variant)}

    assert sorted(last) == [0, 1, 2, 3]
    assert all(send.aborted for send in last.values())


def test_the_records_of_an_aborted_transaction_stand_together() -> None:
    """Each transaction is one run of the list, on every partition, of records that look like the
    others.
    """
    sends = ledger(11, republished=True)
    runs = [(before.transaction, after.transaction) for before, after in pairwise(sends)]
    opened = [after for before, after in runs if after is not None and after != before]
    partitions: defaultdict[int, set[int]] = defaultdict(set)
    for send in sends:
        if send.transaction is not None:
            partitions[send.transaction].add(send.partition)
            assert Envelope.FromString(send.value).postings
            assert Envelope.FromString(send.value).chain

    assert list(range(6)) == opened
    assert all(found == {0, 1, 2, 3} for found in partitions.values())


def test_no_aborted_transactions_on_request() -> None:
    """A workload can do without transactions."""
    assert not any(send.aborted for send in ledger(11, entries=100, aborted_transactions=0))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("moved", [False, True])
def test_a_republished_workload_repeats_and_never_reorders(seed: int, *, moved: bool) -> None:
    """Within a partition every repetition is a run of what came just before, byte for byte."""
    sends = [send for send in ledger(seed, republished=True, moved=moved) if not send.aborted]
    played: defaultdict[int, list[bytes]] = defaultdict(list)
    following: defaultdict[int, int] = defaultdict(int)

    for send in sends:
        run, follower = played[send.partition], following[send.partition]
        at = run.index(send.value) if send.value in run else len(run)
        steps_back = follower == len(run) and at >= len(run) - 50
        assert at == follower or steps_back
        if at == len(run):
            run.append(send.value)
        following[send.partition] = at + 1

    counts = facts(tuple(sends))
    assert counts["repeated"] * 20 >= counts["entries"] == 4_000


@pytest.mark.parametrize("moved", [False, True])
def test_first_hops_rise_by_one_in_each_upstream_partition(*, moved: bool) -> None:
    """An entry has the next position of its upstream partition, whatever was aborted or
    repeated.
    """
    offsets: defaultdict[tuple[str, int, bytes], list[int]] = defaultdict(list)
    for _, envelope in first_sightings(ledger(11, republished=True, moved=moved)):
        [hop] = envelope.chain
        offsets[place(hop)].append(hop.offset)

    assert all(found == list(range(len(found))) for found in offsets.values())


def test_an_aborted_attempt_takes_no_position_upstream() -> None:
    """What was aborted comes again with the same first hop: who counts it discards the right
    entry.
    """
    sends = ledger(11, republished=True)
    aborted = {
        (*place(hop), hop.offset)
        for send in sends[:-50]
        if send.aborted
        for hop in Envelope.FromString(send.value).chain
    }
    committed = {
        (*place(hop), hop.offset) for _, envelope in counted(sends) for hop in envelope.chain
    }

    assert aborted
    assert aborted <= committed


def test_a_move_changes_one_thing_for_each_third_of_the_branches() -> None:
    """Topic, partition or topic id changes alone and once; offsets start again."""
    places: defaultdict[bytes, list[tuple[str, int, bytes]]] = defaultdict(list)
    offsets: defaultdict[bytes, list[int]] = defaultdict(list)
    for send, envelope in first_sightings(ledger(11, moved=True)):
        [hop] = envelope.chain
        if place(hop) not in places[send.key]:
            places[send.key].append(place(hop))
            offsets[send.key].append(hop.offset)
        assert places[send.key][-1] == place(hop)
    changed = [
        tuple(old != new for old, new in zip(*found, strict=True)) for found in places.values()
    ]

    assert {(True, False, False), (False, True, False), (False, False, True)} == set(changed)
    assert sorted(changed.count(kind) for kind in set(changed)) == [5, 5, 6]
    assert min(after for _, after in offsets.values()) == 0


def test_a_move_makes_offsets_that_the_old_one_would_discard() -> None:
    """Every branch has entries after the move whose offset is not above the last one before it."""
    last: dict[bytes, tuple[tuple[str, int, bytes], int]] = {}
    lost: set[bytes] = set()
    for send, envelope in first_sightings(ledger(11, moved=True)):
        [hop] = envelope.chain
        old = last.get(send.key)
        if old and old[0] != place(hop) and hop.offset <= old[1]:
            lost.add(send.key)
        last[send.key] = (place(hop), hop.offset)

    assert set(last) == lost


def test_as_many_accounts_as_entries_are_touched_one_after_the_other() -> None:
    """The workload that keeps a transaction open touches every account."""
    counts = facts(ledger(5, entries=20_000, accounts=20_000))

    assert (counts["entries"], counts["accounts"]) == (20_000, 20_000)
    assert counts["entries_without_postings"] > 100


@pytest.mark.parametrize("republished", [False, True])
def test_a_later_wave_adds_entries_to_the_same_accounts(*, republished: bool) -> None:
    """What arrives later is new and later in every way, and needs the state of what came before."""
    first, second = (
        first_sightings(ledger(5, wave=wave, republished=republished)) for wave in (0, 1)
    )
    accounts = [
        {(send.key, posting.account) for send, envelope in wave for posting in envelope.postings}
        for wave in (first, second)
    ]
    ids = [{envelope.id for _, envelope in wave} for wave in (first, second)]
    hops = [
        [hop.offset for _, envelope in wave for hop in envelope.chain] for wave in (first, second)
    ]

    assert accounts[0] == accounts[1]
    assert not ids[0] & ids[1]
    assert first[-1][0].timestamp_ms < second[0][0].timestamp_ms
    assert max(hops[0], default=-1) < min(hops[1], default=0)


def test_traffic_is_skewed() -> None:
    """By Zipf's law the busiest branch has several times the traffic of the median one."""
    traffic: defaultdict[bytes, int] = defaultdict(int)
    for send in ledger(5):
        traffic[send.key] += 1
    ranked = sorted(traffic.values())

    assert ranked[-1] > 4 * ranked[len(ranked) // 2]


def test_headers_are_awkward_too() -> None:
    """Some records have a header's name twice, an empty value and bytes that are no text."""
    headers = [send.headers for send in ledger(5)]

    assert all(found[0][0] == "traceparent" for found in headers)
    assert any([name for name, _ in found].count("teller") == 2 for found in headers)
    assert any(value == b"" for found in headers for _, value in found)


@pytest.mark.parametrize("seed", range(3))
def test_a_flawed_workload(seed: int) -> None:
    """Each partition begins and ends with a record that cannot be read, and has several in a row;
    entries are as many as ever.
    """
    sends = ledger(seed, flawed=True)
    counts, flawed = facts(sends), [send for send in sends if not is_readable(send)]
    kept = {send.headers[-2:] == (("reason", b""), ("offset", b"0")) for send in flawed}
    for partition in range(4):
        counting = [
            is_readable(send) for send in sends if send.partition == partition and not send.aborted
        ]
        assert (counting[0], counting[-1]) == (False, False)
        assert any(not (before or after) for before, after in pairwise(counting[1:-1]))

    assert (counts["entries"], counts["accounts"], counts["aborted_transactions"]) == (4_000, 64, 6)
    assert counts["unreadable"] == sum(not send.aborted for send in flawed) > 40
    assert {send.partition for send in flawed if send.aborted} == set(range(4))
    assert {None, b"\xff", b"{"} < {send.value and send.value[:1] for send in flawed}
    assert None in {send.key for send in flawed}
    assert (kept, () in {send.headers for send in flawed}) == ({True, False}, True)
    assert sends == ledger(seed, flawed=True)


@pytest.mark.parametrize("flaw", FLAWS)
@pytest.mark.parametrize("seed", range(20))
def test_a_record_that_cannot_be_read(seed: int, flaw: str) -> None:
    """Each flaw makes an entry of which no program that reads envelopes can make anything."""
    assert not is_readable(unreadable(seed, flaw))


def is_readable(send: Send) -> bool:
    """Whether a relay can read it."""
    place = {
        "topic": "app-input",
        "partition": send.partition,
        "offset": 0,
        "timestamp_ms": send.timestamp_ms,
    }
    try:
        return bool(PROGRAMS["relay"].model([Record(key=send.key, value=send.value, **place)]))
    except Unreadable:
        return False


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"branches": 2}, "partitions <= branches <= accounts"),
        ({"accounts": 8}, "partitions <= branches <= accounts"),
        ({"entries": 8}, "an entry for every branch"),
        ({"entries": 16}, "touch at most 32 accounts"),
    ],
)
def test_a_workload_that_cannot_be_is_refused(wrong: dict[str, Any], sentence: str) -> None:
    """Numbers that contradict each other end in a sentence."""
    with pytest.raises(ValueError, match=sentence):
        ledger(5, **wrong)


JOINS = pytest.mark.parametrize("program", ["clients", "tickers", "holdings"])


def joined(program: str, seed: int = 7, **more: int) -> Tables:
    """Both tables of a workload of the features' size."""
    size = {"rows": 400, "partners": 400 if program == "clients" else 40} | more
    return Tables(seed, program, **size)


def everything(made: Tables) -> list[Send]:
    """All that can be asked of it, one after the other."""
    steps = [
        made.changes(500),
        made.partner_deletions(),
        made.partner_changes(),
        made.deletions(),
        made.insertions(),
    ]
    return sum([*steps, made.changes(100, aborted=False)], list[Send]())


def row_of(send: Send) -> dict[str, Any]:
    """What a record says."""
    row: dict[str, Any] = json.loads(send.value or b"null")
    return row


def last_rows(sends: Iterable[Send], role: str) -> dict[bytes | None, dict[str, Any]]:
    """The table that a reader of committed data has in the end."""
    rows = {send.key: send for send in sends if send.role == role and not send.aborted}
    return {key: row_of(send) for key, send in rows.items() if send.value}


def all_workloads() -> list[str]:
    """Digests of a ledger, and of all that can be asked of the tables of two programs."""
    tables = [everything(joined(program)) for program in ("holdings", "clients")]
    return [
        digest(sends) for sends in (ledger(7, entries=500, republished=True, moved=True), *tables)
    ]


def test_one_seed_makes_the_same_bytes_in_any_process() -> None:
    """Nothing of the process, not even the order of its sets, reaches a workload; the same
    questions have the same answers.
    """
    script = (
        "import sys; sys.path.insert(0, 'tests/unit/generators'); from test_generators import all_workloads; "
        "print(*all_workloads())"
    )
    other = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"

    elsewhere = told(script, other)

    assert all_workloads() == elsewhere.split()


@JOINS
def test_tables_whose_first_changes_were_made_before_go_on_as_if_they_had_made_them(
    program: str,
) -> None:
    """Whatever came of the others meanwhile; and those that did something else first make changes
    of their own.
    """
    first, second, third = (joined(program, 11) for _ in range(3))
    made = first.changes(500)
    more = [*first.changes(100), *first.partner_deletions(), *first.deletions()]

    assert second.changes(500) == made
    assert [*second.changes(100), *second.partner_deletions(), *second.deletions()] == more
    third.partner_changes()
    assert third.changes(500) != made


def test_two_seeds_make_two_workloads_of_tables() -> None:
    """The seed reaches keys, rows and times."""
    first, second = (joined("holdings", seed).changes(100) for seed in (1, 2))

    assert digest(first) != digest(second)
    assert first[0].timestamp_ms != second[0].timestamp_ms


@JOINS
@pytest.mark.parametrize("seed", range(3))
def test_the_changes_of_tables_have_all_that_trips_a_design(program: str, seed: int) -> None:
    """Rows come, change, move, go, come again and go without having been there, some right after
    one another.
    """
    made = joined(program, seed)
    sends = made.changes(4_000)
    counts = tables.facts(sends)
    there: dict[bytes | None, dict[str, Any] | None] = {}
    fates: defaultdict[str, int] = defaultdict(int)
    for before, send in pairwise([s for s in sends if s.role == made.roles[0] and not s.aborted]):
        row, was = row_of(send), there.get(send.key)
        fates["goes at once"] += send.value is None and before.key == send.key
        fates["comes again"] += was is None and send.key in there and row is not None
        fates["goes unknown"] += row is None and was is None
        fates["moves"] += bool(row and was and row.get("ticker") != was.get("ticker"))
        fates["stays"] += bool(row and was and row.get("ticker") == was.get("ticker"))
        there[send.key] = row
    tickers = [row.get("ticker", "") for row in there.values() if row]

    assert 4_000 <= counts["entries"] <= 4_002
    assert 390 <= counts["accounts"] <= 400
    assert counts["deletions"] > 500
    assert counts["partner_changes"] > 250
    assert counts["aborted"] > 8
    assert counts["records"] == counts["entries"] + counts["partner_changes"] + counts["aborted"]
    assert min(fates[name] for name in ("goes at once", "comes again", "stays")) > 100
    assert fates["goes unknown"] > 10
    if program != "clients":
        assert fates["moves"] > 100
        assert None in tickers
        assert any(ticker and ticker.startswith("UNKNOWN") for ticker in tickers)


@JOINS
def test_partners_come_change_go_and_are_missing(program: str) -> None:
    """Some partners are there from the beginning and some never, and they are deleted and inserted
    again meanwhile.
    """
    made = joined(program)
    sends = [send for send in made.changes(4_000) if not send.aborted]
    first = next(number for number, send in enumerate(sends) if send.role == made.roles[0])
    partners = [send for send in sends if send.role == made.roles[1]]
    seen: set[bytes | None] = set()
    gone: set[bytes | None] = set()
    for send in partners:
        gone |= {send.key} if send.value is None else set()
        seen |= {send.key} if send.value is not None and send.key in gone else set()

    assert 0 < first < (400 if program == "clients" else 40)
    assert {send.role for send in sends[:first]} == {made.roles[1]}
    assert gone
    assert seen


@JOINS
@pytest.mark.parametrize(("partitions", "beside"), [(4, 4), (3, 4)])
def test_a_key_has_one_partition_and_each_ends_in_an_aborted_record(
    program: str, partitions: int, beside: int
) -> None:
    """Both topics keep a key together, end in markers in every partition, and abort in transactions
    that stand together.
    """
    made = joined(program, partitions=partitions, beside=beside)
    sends = made.changes(1_000)
    places: defaultdict[tuple[str, bytes | None], set[int]] = defaultdict(set)
    for send in sends:
        places[send.role, send.key].add(send.partition)
    last = {(send.role, send.partition): send for send in sends}
    runs = [
        after.transaction
        for before, after in pairwise(sends)
        if after.transaction not in (None, before.transaction)
    ]

    assert all(len(found) == 1 for found in places.values())
    assert sorted(last) == sorted(
        (role, p)
        for role, n in zip(made.roles, (partitions, beside), strict=True)
        for p in range(n)
    )
    assert all(send.aborted for send in last.values())
    assert runs == list(range(len(runs)))
    assert len(runs) > 2
    assert not any(send.aborted for send in joined(program).changes(100, aborted=False))


@JOINS
def test_times_rise_and_what_was_aborted_says_something_else(program: str) -> None:
    """Every record is later than the one before it, over waves too, and an aborted row is none that
    counts.
    """
    sends = everything(joined(program))
    counted = {send.value for send in sends if not send.aborted}

    assert all(before.timestamp_ms < after.timestamp_ms for before, after in pairwise(sends))
    assert sum(send.value in counted for send in sends if send.aborted) < sum(
        send.aborted for send in sends
    )


@JOINS
def test_every_record_of_a_workload_is_of_the_contract(program: str) -> None:
    """The model of the program reads all of it."""
    records = [
        Record(
            topic=f"app-{s.role}",
            partition=s.partition,
            offset=n,
            timestamp_ms=0,
            key=s.key,
            value=s.value,
        )
        for n, s in enumerate(everything(joined(program)))
    ]

    assert PROGRAMS[program].model(records)


@JOINS
def test_tables_know_what_is_there(program: str) -> None:
    """What is remembered is what a reader of committed data would have, however often more is asked
    for.
    """
    made = joined(program)
    sends: list[Send] = []
    for step in (
        lambda: made.changes(800),
        made.partner_changes,
        lambda: made.changes(300),
        made.partner_deletions,
    ):
        sends += step()
        assert last_rows(sends, made.roles[0]) == {
            row["positionId" if "positionId" in row else "client"].encode(): row
            for row in made.left.values()
        }
        assert len(last_rows(sends, made.roles[1])) == len(made.right)


def test_every_row_moves_to_another_partner() -> None:
    """Each row that is there is written once, with another ticker than before, be that none or an
    unknown one.
    """
    made = joined("holdings")
    before = last_rows(made.changes(2_000), "positions")
    moves = made.moves()

    assert {send.key for send in moves} == before.keys()
    assert len(moves) == len(before)
    assert all(row_of(send)["ticker"] != before[send.key]["ticker"] for send in moves)
    assert last_rows(moves, "positions") == {
        row["positionId"].encode(): row for row in made.left.values()
    }


@JOINS
def test_all_of_a_table_goes_and_comes(program: str) -> None:
    """Every row that is there is deleted, every one that is not inserted; every partner changes,
    and every one there goes.
    """
    made = joined(program)
    first, second = made.roles
    sends = made.changes(2_000)
    there = last_rows(sends, first).keys()
    deletions, again, insertions = made.deletions(), made.deletions(), made.insertions()

    assert {send.key for send in deletions} == there
    assert all(send.value is None and send.role == first for send in deletions)
    assert again == []
    assert len({send.key for send in insertions if send.value}) == len(insertions) == 400
    assert made.insertions() == []

    changes, goes = made.partner_changes(), made.partner_deletions()
    assert (
        len({send.key for send in changes if send.value})
        == len(changes)
        == (400 if program == "clients" else 40)
    )
    assert {send.role for send in (*changes, *goes)} == {second}
    assert {send.key for send in goes if send.value is None} == {send.key for send in changes}
    assert made.partner_deletions() == []


def test_numbers_that_a_float_cannot_hold() -> None:
    """Amounts are zero, negative and above 2^53, and lists of positions are empty too."""
    amounts = {
        row_of(s)["amount"]
        for s in joined("holdings").changes(1_000)
        if s.value and s.role == "positions"
    }
    lists = [
        row["positions"]
        for row in last_rows(joined("clients").changes(1_000), "client-positions").values()
    ]

    assert {0, -5, 2**53 + 1} <= amounts
    assert {0, 4} <= {len(each) for each in lists}


@pytest.mark.parametrize(("rows", "partners"), [(3, 4), (3, 0)])
def test_tables_that_cannot_be_are_refused(rows: int, partners: int) -> None:
    """Numbers that contradict each other end in a sentence."""
    with pytest.raises(ValueError, match=f"{rows} rows are not enough for {partners} partners"):
        Tables(7, "holdings", rows=rows, partners=partners)


def test_a_table_as_it_stands_in_a_feature() -> None:
    """Numbers, lists and text are what they look like, a cell without text is null, and a key alone
    a tombstone.
    """
    positions = written(
        "positions",
        [["positionId", "client", "ticker", "amount"], ["1", "c", "", "-3"], ["1", "", "", ""]],
        4,
    )
    held = written("client-positions", [["client", "positions"], ["c", "1, 3"]], 4)
    founded = written(
        "tickers", [["ticker", "exchange", "name", "founded"], ["A", "LON", "A & Co", "1900"]], 1
    )

    assert [row_of(send) for send in positions] == [
        {"positionId": "1", "client": "c", "ticker": None, "amount": -3},
        None,
    ]
    assert [(send.key, send.value is None) for send in positions] == [(b"1", False), (b"1", True)]
    assert len({send.partition for send in positions}) == 1
    assert positions[0].timestamp_ms < positions[1].timestamp_ms
    assert [row_of(send) for send in held] == [{"client": "c", "positions": [1, 3]}]
    assert [row_of(send) for send in founded] == [
        {"ticker": "A", "exchange": "LON", "name": "A & Co", "founded": 1900}
    ]
    assert [send.role for send in (*positions, *held, *founded)] == [
        "positions",
        "positions",
        "client-positions",
        "tickers",
    ]
    assert {send.partition for send in founded} == {0}


@pytest.mark.parametrize("role", ["positions", "tickers", "client-positions", "client-details"])
@pytest.mark.parametrize(
    "flaw", ["with a null key", "that is no JSON", "with text for a number", "without a field", ""]
)
def test_a_spoiled_record(role: str, flaw: str) -> None:
    """Each flaw, and nothing else, makes a record that the contract does not allow."""
    send = spoiled(role, flaw)
    record = Record(
        topic=f"app-{role}",
        partition=0,
        offset=0,
        timestamp_ms=EPOCH_MS,
        key=send.key,
        value=send.value,
    )
    program = PROGRAMS["clients" if role.startswith("client") else "holdings"]

    assert send.role == role
    if not flaw:
        program.model([record])
        return
    with pytest.raises(Unreadable):
        program.model([record])


def test_signals_have_all_that_trips_a_design() -> None:
    """Every kind of signal, skew, signals older than a robot's first and of one moment; a robot
    keeps to its partition.
    """
    sends = signals(7)
    said = [(send, json.loads(send.value or b"")) for send in sends if not send.aborted]
    first: dict[str, int] = {}
    older = equal = 0
    for _, value in said:
        since = first.setdefault(value["robot"], value["ts_ms"])
        older, equal = older + (value["ts_ms"] < since), equal + (value["ts_ms"] == since)
    loudest, quietest = max(by := Counter(v["robot"] for _, v in said).values()), min(by)

    assert len(said) == 4_000
    assert {send.role for send, _ in said} == {"motors", "grippers", "controllers"}
    assert (older > 10, equal > len(first), loudest > 20 * quietest) == (True, True, True)
    assert len({(send.key, send.partition) for send in sends}) == 64


def test_signals_and_names_end_in_aborted_records() -> None:
    """Every partition that is written to ends in a record of an aborted transaction, and a name may
    go again.
    """
    for sends in (signals(7, robots=16), names(7, count=200, robots=16)):
        last = {(send.role, send.partition): send for send in sends}

        assert all(send.aborted for send in last.values())
    assert any(send.value is None for send in names(7, count=200, robots=16))


def test_a_later_wave_of_signals() -> None:
    """The same robots say something else, later; one seed makes the same bytes."""
    one, two = signals(7, count=400), signals(7, count=400, wave=1)

    assert one == signals(7, count=400)
    assert {send.key for send in one} == {send.key for send in two}
    assert max(send.timestamp_ms for send in one) < min(send.timestamp_ms for send in two)


def test_every_signal_and_name_is_of_the_contract() -> None:
    """The model reads what the generator makes."""
    for send in [*signals(7, count=400), *names(7)]:
        said(
            Record(
                topic=f"app-{send.role}",
                offset=0,
                **{n: getattr(send, n) for n in ("key", "value", "partition", "timestamp_ms")},
            )
        )
    with pytest.raises(ValueError, match="not enough"):
        signals(7, count=3, robots=4)
