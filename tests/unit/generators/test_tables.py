"""The tables of joins have all that trips a design, and nothing else."""

from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest
from workloads import JOINS, digest, everything, joined, last_rows, row_of

from upheld.generators import tables
from upheld.generators.ledger import EPOCH_MS, Send
from upheld.generators.tables import Tables, spoiled, written
from upheld.history.events import Record
from upheld.programs import PROGRAMS, Unreadable


@JOINS
def test_tables_whose_first_changes_were_made_before_go_on_as_if_they_had_made_them(
    program: str,
) -> None:
    """Later changes follow from the first ones, whatever came of other tables.

    Tables that did something else first make changes of their own.
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
    """Rows come, change, move, go and come again, some right after one another.

    Some go without having been there.
    """
    made = joined(program, seed)
    sends = made.changes(4_000)
    counts = tables.facts(sends)
    there: dict[bytes | None, dict[str, Any] | None] = {}
    fates: defaultdict[str, int] = defaultdict(int)
    for before, send in pairwise([s for s in sends if s.role == made.roles[0] and not s.aborted]):
        row = row_of(send)
        was = there.get(send.key)
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
    """Some partners are there from the beginning, and some never.

    They are deleted and inserted again meanwhile.
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
def test_only_a_reference_that_is_read_once_stands_after_the_first_changes(program: str) -> None:
    """An instance cannot know of what changes in it after its start, so nothing does."""
    made = joined(program)
    made.changes(500)
    roles = {send.role for send in made.changes(500)}

    assert roles == set(made.roles[: 1 if PROGRAMS[program].broadcast else 2])


@JOINS
@pytest.mark.parametrize(("partitions", "beside"), [(4, 4), (3, 4)])
def test_a_key_has_one_partition_and_each_ends_in_an_aborted_record(
    program: str, partitions: int, beside: int
) -> None:
    """Both topics keep a key together, and end in markers in every partition.

    The records of an aborted transaction stand together.
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
    """Every record is later than the one before it, over waves too.

    An aborted row is none that counts.
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
    """Tables remember the rows that a reader of committed data would have.

    They do, however often more is asked for.
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
    """Each row that is there is written once, with another ticker than before.

    The ticker may be none or an unknown one.
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
    """Every row that is there is deleted, and every other one inserted.

    Every partner changes, and every one that is there goes.
    """
    made = joined(program)
    first, second = made.roles
    sends = made.changes(2_000)
    there = last_rows(sends, first).keys()
    deletions = made.deletions()
    again = made.deletions()
    insertions = made.insertions()

    assert {send.key for send in deletions} == there
    assert all(send.value is None and send.role == first for send in deletions)
    assert again == []
    assert len({send.key for send in insertions if send.value}) == len(insertions) == 400
    assert made.insertions() == []

    changes = made.partner_changes()
    goes = made.partner_deletions()
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
    """Numbers, lists and text in a cell are what they look like.

    A cell without text is null, and a key alone a tombstone.
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
    send = spoiled(role, flaw, 4)
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
