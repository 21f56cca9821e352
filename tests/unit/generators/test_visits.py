"""The visits of `batcher` have what trips a design."""

import pytest

from upheld.generators.visits import facts, visits


def test_the_workload() -> None:
    """One seed gives the same bytes, and a wave brings new events.

    Every customer has an event, and nulls and aborted events stand between.
    """
    first = visits(7)
    again = visits(7)
    next_wave = visits(7, wave=1)
    counted = facts(first)

    assert first == again
    assert counted["entries"] == 4000
    assert counted["accounts"] == 40
    assert counted["nulls"] > 40
    assert counted["aborted"] >= 6
    assert {send.partition for send in first} == set(range(4))
    assert len({send.value for send in [*first, *next_wave] if send.value}) == sum(
        bool(s.value) for s in [*first, *next_wave]
    )
    assert {send.key for send in first} == {send.key for send in next_wave}
    assert facts(visits(7, events=1, customers=1, plain=True)) == {
        "records": 1,
        "entries": 1,
        "accounts": 1,
        "nulls": 0,
        "aborted": 0,
    }
    with pytest.raises(ValueError, match="3 events are not enough for 4 customers"):
        visits(7, events=3, customers=4)
