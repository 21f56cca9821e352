"""Each row of a table lies where Kafka's default partitioner puts its key."""

from collections import Counter

import pytest

from upheld.generators.ledger import Send
from upheld.generators.placement import murmur2, partition_of
from upheld.generators.tables import Tables, spoiled, written

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


def changes(program: str, partitions: int, beside: int) -> list[Send]:
    """Make all kinds of changes of two tables."""
    tables = Tables(SEED, program, rows=60, partners=60, partitions=partitions, beside=beside)
    sends = tables.changes(400)
    if program == "holdings":
        sends += tables.moves() + tables.more(40) + tables.no_more()
    return sends + tables.insertions() + tables.partner_changes()


@pytest.mark.parametrize("sizes", [(4, 4), (3, 4), (8, 1)])
@pytest.mark.parametrize("program", ["clients", "holdings"])
def test_both_tables(program: str, sizes: tuple[int, int]) -> None:
    """A row of two topics lies where each topic's size puts it."""
    sends = changes(program, *sizes)
    count = dict(zip(dict.fromkeys(("positions", "tickers")), sizes, strict=True))
    count |= dict(zip(("client-positions", "client-details"), sizes, strict=True))

    strays = [s for s in sends if partition_of(s.key or b"", count[s.role]) != s.partition]
    assert not strays
    assert Counter(send.role for send in sends).keys() <= count.keys()


def test_a_table_in_words() -> None:
    """A table that stands in a feature has its keys as they are written there."""
    sends = written("tickers", [["ticker", "name"], *([f"T{n}", "n"] for n in range(20))], 4)

    assert all(send.partition == partition_of(send.key or b"", 4) for send in sends)


@pytest.mark.parametrize("role", ["positions", "tickers", "client-positions", "visits"])
def test_an_odd_record(role: str) -> None:
    """It lies in partition 0, and its key with it."""
    send = spoiled(role, "that is no JSON")

    assert send.partition == partition_of(send.key or b"", 4) == 0
