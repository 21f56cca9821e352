"""A workload as it lies in the log."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamgate.brokers import open_broker
from streamgate.designs.reaper import RunScope
from streamgate.feed import Feed
from streamgate.generators.ledger import Send, ledger
from streamgate.history.reading import Reading

PARTITIONS = 4


def written(directory: Path, sends: Sequence[Send]) -> tuple[dict[str, int], list[Any], list[Any]]:
    """What the feed said of it; then what is visible of it, and all of it, as soon as no transaction is open."""
    with RunScope() as run:
        broker = open_broker("embedded", run=run, log_dir=directory)
        reading = Reading(broker.bootstrap, broker.client)
        reading.create({"entries": PARTITIONS})

        told = Feed(reading.settings, "test").write({"entries": "entries"}, "entries", sends)

        stable = end = None
        while stable is None or stable != end:
            stable, end = reading.ends("entries", PARTITIONS)
        visible, everything = (
            reading.records("entries", dict.fromkeys(range(PARTITIONS), 0), committed=committed)
            for committed in (True, False)
        )
        reading.close()
    return told, visible, everything


def test_aborted_records_lie_in_between_and_end_every_partition(tmp_path: Path) -> None:
    """All that counts is visible, in its order, and ends where it was said; aborted attempts stand in between and behind it."""
    sends = ledger(1, partitions=PARTITIONS)
    told, visible, everything = written(tmp_path, sends)
    for partition in range(PARTITIONS):
        counted = [send.value for send in sends if send.partition == partition and not send.aborted]
        seen = [message for message in visible if message.partition() == partition]
        assert [message.value() for message in seen] == counted
        ends, offsets = seen[-1].offset() or 0, {message.offset() for message in seen}
        aborted = [m.offset() or 0 for m in everything if m.partition() == partition and m.offset() not in offsets]
        assert min(aborted) < ends < max(aborted)
        assert told[f"entries-{partition}"] == ends + 1


def test_what_comes_after_the_last_aborted_records_lies_behind_them(tmp_path: Path) -> None:
    """In every partition an open transaction begins before all that counts, so that nothing of it is there before the rest."""
    sends = sorted(ledger(1, partitions=PARTITIONS, aborted_transactions=1), key=lambda send: not send.aborted)
    _, visible, everything = written(tmp_path, sends)
    assert 0 < len(visible) < len(everything)
    for partition in range(PARTITIONS):
        first = min(m.offset() for m in visible if m.partition() == partition)
        assert min(m.offset() for m in everything if m.partition() == partition) < first
