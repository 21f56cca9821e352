"""What the harness asks a broker about transactions and groups."""

import time
from pathlib import Path

from confluent_kafka import Consumer, Producer

from streamgate.brokers import open_broker
from streamgate.designs.reaper import RunScope
from streamgate.history.reading import Reading

DEADLINE_S = 30.0


def test_an_open_transaction_is_undecided_until_it_ends(tmp_path: Path) -> None:
    """Its writer stands above the last stable offset and among the undecided; of what was decided neither is so."""
    with RunScope() as run:
        broker = open_broker("embedded", run=run, log_dir=tmp_path)
        reading = Reading(broker.bootstrap, broker.client)
        reading.create({"probe": 1})
        producer = Producer(reading.settings | {"transactional.id": "probe"})
        producer.init_transactions(DEADLINE_S)
        found = []
        for ends in (producer.commit_transaction, producer.abort_transaction):
            producer.begin_transaction()
            producer.produce("probe", b"value")
            producer.flush(DEADLINE_S)
            stable, _ = reading.ends("probe", 1)
            found.append({batch.producer_id for _, batch in reading.wire.batches("probe", stable)})
            found.append(reading.wire.undecided())
            ends(DEADLINE_S)
            found.append(reading.wire.undecided())
        reading.close()
    writer = found[0]
    assert len(writer) == 1
    assert found == [writer, writer, set()] * 2


def test_a_group_says_who_holds_what(tmp_path: Path) -> None:
    """Each member with its partitions once they agree, nothing before that, and nobody in a group without members."""
    with RunScope() as run:
        broker = open_broker("embedded", run=run, log_dir=tmp_path)
        reading = Reading(broker.bootstrap, broker.client)
        reading.create({"probe": 3})
        members = [Consumer(reading.settings | {"group.id": "probe"}) for _ in range(2)]
        for member in members:
            member.subscribe(["probe"])
        deadline, held = time.monotonic() + DEADLINE_S, reading.members("probe")
        while (held is None or len(held) < len(members)) and time.monotonic() < deadline:
            for member in members:
                member.poll(0.05)
            held = reading.members("probe")
        for member in members:
            member.close()
        empty = reading.members("probe")
        reading.close()

    assert held == [["probe-0", "probe-1"], ["probe-2"]]
    assert empty == []
