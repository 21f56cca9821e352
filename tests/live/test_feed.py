"""A workload as it lies in the log."""

from pathlib import Path

from streamgate.brokers import open_broker
from streamgate.designs.reaper import RunScope
from streamgate.feed import Feed
from streamgate.generators.ledger import ledger
from streamgate.history.reading import Reading

PARTITIONS = 4


def test_aborted_records_lie_in_between_and_end_every_partition(tmp_path: Path) -> None:
    """All that counts is visible, in its order, and ends where it was said; aborted attempts stand in between and behind it."""
    with RunScope() as run:
        broker = open_broker("embedded", run=run, log_dir=tmp_path)
        reading = Reading(broker.bootstrap, broker.client)
        reading.create({"entries": PARTITIONS})
        sends = ledger(1, partitions=PARTITIONS)

        told = Feed(reading.settings, "test").write({"entries": "entries"}, "entries", sends)

        visible, all_of_it = (
            reading.records("entries", dict.fromkeys(range(PARTITIONS), 0), committed=committed)
            for committed in (True, False)
        )
        reading.close()
    for partition in range(PARTITIONS):
        counted = [send.value for send in sends if send.partition == partition and not send.aborted]
        seen = [message for message in visible if message.partition() == partition]
        assert [message.value() for message in seen] == counted
        ends, offsets = seen[-1].offset() or 0, {message.offset() for message in seen}
        aborted = [m.offset() or 0 for m in all_of_it if m.partition() == partition and m.offset() not in offsets]
        assert min(aborted) < ends < max(aborted)
        assert told[f"entries-{partition}"] == ends + 1
