"""Each generated record lies where Kafka's default partitioner puts its key."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upheld.generators.ledger import FLAWS, Send, ledger, unreadable
from upheld.generators.placement import murmur2, partition_of
from upheld.generators.pulse import names, signals
from upheld.generators.tables import Tables, spoiled, written
from upheld.generators.visits import visits
from upheld.programs import PROGRAMS

SEED = 7


@pytest.mark.parametrize(
    ("key", "signed"),
    [
        # From the tests of Kafka's own Utils.murmur2.
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("a-little-bit-longer-string", -1486304829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        ("abc", 479470107),
    ],
)
def test_the_hash_is_kafkas(key: str, signed: int) -> None:
    """Java's hash is a signed number; the partitioner clears its sign."""
    assert murmur2(key.encode()) == signed & 0xFFFFFFFF
    assert partition_of(key.encode(), 4) == (signed & 0x7FFFFFFF) % 4


class Size(NamedTuple):
    """The partitions of the first input, and of the second one if there is one."""

    partitions: int
    beside: int


def entries(seed: int, size: Size) -> Iterator[Send]:
    """Make entries of all kinds, and the single records that cannot be read."""
    many = max(16, size.partitions)
    numbers = {"entries": 2 * many, "accounts": many, "branches": many}
    for wave in (0, 1):
        for kind in ("republished", "moved", "doomed", "flawed"):
            kinds = {kind: True}
            yield from ledger(seed, partitions=size.partitions, wave=wave, **numbers, **kinds)
    if size.partitions > 1:
        yield from ledger(seed, partitions=size.partitions, idle=1, **numbers)
    for flaw in FLAWS:
        yield unreadable(seed, flaw, size.partitions)


def events(seed: int, size: Size) -> Iterator[Send]:
    """Make events, nulls among them."""
    for plain in (False, True):
        yield from visits(
            seed, events=120, customers=60, partitions=size.partitions, plain=plain, wave=int(plain)
        )
    yield spoiled("visits", "that is no JSON", size.partitions)


def reports(seed: int, size: Size) -> Iterator[Send]:
    """Make signals of robots, and their names."""
    for wave in (0, 1):
        yield from signals(seed, count=120, robots=60, partitions=size.partitions, wave=wave)
        yield from names(seed, count=120, robots=60, partitions=size.partitions, wave=wave)


def rows(program: str) -> Callable[[int, Size], Iterator[Send]]:
    """Return a function that makes all kinds of changes of two tables."""

    def make(seed: int, size: Size) -> Iterator[Send]:
        tables = Tables(seed, program, rows=60, partners=60, **size._asdict())
        yield from tables.changes(400)
        if program != "clients":
            yield from tables.moves()
            yield from tables.more(40)
            yield from tables.no_more()
        yield from tables.insertions()
        yield from tables.partner_changes()
        for role, partitions in zip(tables.roles, size, strict=True):
            head = [PROGRAMS[program].reads, "name"]
            yield from written(role, [head, *([f"T{n}", "n"] for n in range(9))], partitions)
            yield spoiled(role, "that is no JSON", partitions)

    return make


WORKLOADS: Final[Mapping[str, Callable[[int, Size], Iterator[Send]]]] = {
    **dict.fromkeys(("ledger", "relay", "branches"), entries),
    "batcher": events,
    "pulse": reports,
    **{program: rows(program) for program in ("clients", "tickers", "holdings")},
}


@pytest.mark.parametrize("program", PROGRAMS)
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 9), partitions=st.integers(1, 20), beside=st.integers(1, 9))
def test_every_record_with_a_key(program: str, seed: int, partitions: int, beside: int) -> None:
    """A record with a key lies where the size of its topic puts the key."""
    size = Size(partitions, beside)
    second = PROGRAMS[program].beside

    strays = []
    for send in WORKLOADS[program](seed, size):
        count = beside if send.role == second and second else partitions
        if send.key is not None and send.partition != partition_of(send.key, count):
            strays.append(send)

    assert not strays


@pytest.mark.parametrize("partitions", [1, 2, 3, 4])
def test_keys_of_a_topic_that_doubles(partitions: int) -> None:
    """A branch has one key, and goes from partition p of n to p or p + n."""
    before, after = (
        {send.key: send.partition for send in ledger(SEED, partitions=count, entries=400)}
        for count in (partitions, 2 * partitions)
    )

    assert before.keys() == after.keys()
    assert all(after[key] - before[key] in {0, partitions} for key in before)
    assert set(after.values()) == set(range(2 * partitions))


def test_a_partition_that_is_idle() -> None:
    """No branch has a key there, and the other partitions share the branches."""
    sends = ledger(SEED, idle=1)

    branches = Counter(partition_of(key or b"", 4) for key in {send.key for send in sends})
    assert sorted(branches.values()) == [5, 5, 6]
    assert branches.keys() == {0, 1, 2}
