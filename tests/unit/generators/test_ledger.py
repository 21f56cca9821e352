"""The entries of `ledger` and `relay` have all that trips a design."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from workloads import counted, digest, place

from upheld.generators.envelope_pb2 import Envelope
from upheld.generators.ledger import FLAWS, Send, facts, ledger, unreadable
from upheld.history.events import Record
from upheld.programs import PROGRAMS, Unreadable

INT64_MAX = 2**63 - 1
VARIANTS: list[dict[str, Any]] = [
    {},
    {"republished": True},
    {"moved": True},
    {"republished": True, "moved": True},
    {"entries": 1_000, "accounts": 1_000},
]


def first_sightings(sends: Iterable[Send]) -> list[tuple[Send, Envelope]]:
    """Leave out what is aborted or repeated."""
    seen: dict[str, tuple[Send, Envelope]] = {}
    for send, envelope in counted(sends):
        seen.setdefault(envelope.id, (send, envelope))
    return list(seen.values())


def test_two_seeds_make_two_workloads() -> None:
    """The seed reaches names, amounts and times."""
    first = ledger(1, entries=100)
    second = ledger(2, entries=100)

    assert digest(first) != digest(second)
    assert first[0].timestamp_ms != second[0].timestamp_ms


@pytest.mark.parametrize("seed", range(3))
def test_the_default_workload_has_all_that_trips_a_design(seed: int) -> None:
    """Every awkward kind of entry occurs in every seed.

    It occurs often enough to meet a fault.
    """
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
    """A branch has one partition, and an account one branch.

    All sums fit into 64 bits at every moment.
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
    """Ids are unique and times strictly rise, aborted records included.

    Record and envelope agree.
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
    """Each transaction is one run of the list, on every partition.

    Its records look like the others.
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
    """Within a partition every repetition is a run of the records just before.

    It is the same byte for byte.
    """
    sends = [send for send in ledger(seed, republished=True, moved=moved) if not send.aborted]
    played: defaultdict[int, list[bytes]] = defaultdict(list)
    following: defaultdict[int, int] = defaultdict(int)

    for send in sends:
        run = played[send.partition]
        follower = following[send.partition]
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
    """An entry has the next position of its upstream partition.

    Aborted and repeated entries do not change that.
    """
    offsets: defaultdict[tuple[str, int, bytes], list[int]] = defaultdict(list)
    for _, envelope in first_sightings(ledger(11, republished=True, moved=moved)):
        [hop] = envelope.chain
        offsets[place(hop)].append(hop.offset)

    assert all(found == list(range(len(found))) for found in offsets.values())


def test_an_aborted_attempt_takes_no_position_upstream() -> None:
    """An aborted entry comes again with the same first hop.

    A design that counts it discards the right entry.
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
    """After the move every branch has entries whose offset is not above the last."""
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
    """A later wave is new and later in every way, and needs the earlier state."""
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
    """The busiest branch has several times the median traffic, by Zipf's law."""
    traffic: defaultdict[bytes, int] = defaultdict(int)
    for send in ledger(5):
        traffic[send.key] += 1
    ranked = sorted(traffic.values())

    assert ranked[-1] > 4 * ranked[len(ranked) // 2]


def test_headers_are_awkward_too() -> None:
    """Some records have a header's name twice, an empty value and no text."""
    headers = [send.headers for send in ledger(5)]

    assert all(found[0][0] == "traceparent" for found in headers)
    assert any([name for name, _ in found].count("teller") == 2 for found in headers)
    assert any(value == b"" for found in headers for _, value in found)


@pytest.mark.parametrize("seed", range(3))
def test_a_flawed_workload(seed: int) -> None:
    """Each partition begins and ends with an unreadable record.

    It has several in a row, and as many entries as ever.
    """
    sends = ledger(seed, flawed=True)
    counts = facts(sends)
    flawed = [send for send in sends if not is_readable(send)]
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
    """Each flaw makes an entry that no program that reads envelopes can use."""
    assert not is_readable(unreadable(seed, flaw, 4))


def is_readable(send: Send) -> bool:
    """Return whether a relay can read the record."""
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
