"""The signals of `pulse` have all that trips a design, and nothing else."""

import json
from collections import Counter

import pytest

from upheld.generators.pulse import names, signals
from upheld.history.events import Record
from upheld.programs.pulse import said


def test_signals_have_all_that_trips_a_design() -> None:
    """There is every kind of signal, skew, and signals of one moment.

    There are signals older than a robot's first, and a robot keeps to its partition.
    """
    sends = signals(7)
    said = [(send, json.loads(send.value or b"")) for send in sends if not send.aborted]
    first: dict[str, int] = {}
    older = equal = 0
    for _, value in said:
        since = first.setdefault(value["robot"], value["ts_ms"])
        older = older + (value["ts_ms"] < since)
        equal = equal + (value["ts_ms"] == since)
    loudest = max(by := Counter(v["robot"] for _, v in said).values())
    quietest = min(by)

    assert len(said) == 4_000
    assert {send.role for send, _ in said} == {"motors", "grippers", "controllers"}
    assert (older > 10, equal > len(first), loudest > 20 * quietest) == (True, True, True)
    assert len({(send.key, send.partition) for send in sends}) == 64


def test_signals_and_names_end_in_aborted_records() -> None:
    """Every partition that is written to ends in an aborted record.

    A name may go again.
    """
    for sends in (signals(7, robots=16), names(7, count=200, robots=16)):
        last = {(send.role, send.partition): send for send in sends}

        assert all(send.aborted for send in last.values())
    assert any(send.value is None for send in names(7, count=200, robots=16))


def test_a_later_wave_of_signals() -> None:
    """The same robots say something else, later; one seed makes the same bytes."""
    one = signals(7, count=400)
    two = signals(7, count=400, wave=1)

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
