"""The reference runs without the harness, by spark-submit, on a Kafka of the reader's own."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from confluent_kafka import Producer

from streamgate.brokers import open_broker
from streamgate.brokers.jars import jar_set
from streamgate.designs.reaper import RunScope
from streamgate.generators.envelope_pb2 import Envelope, Posting
from streamgate.history.reading import Reading
from streamgate.impl.spark import main

DEADLINE_S = 90.0
LOOK_S = 0.1
ENTRIES = 50


def test_spark_submit(tmp_path: Path) -> None:
    """A bootstrap and a checkpoint are enough: what was in `entries` is summed in `balances`, and SIGTERM ends it."""
    file = Path(main.__file__)
    jars = ",".join(map(str, jar_set(file.parent / "jars")))
    with RunScope() as run:
        broker = open_broker("embedded", run=run, log_dir=tmp_path)
        reading = Reading(broker.bootstrap, broker.client)
        reading.create({"entries": 2, "balances": 2})
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for _ in range(ENTRIES):
            entry = Envelope(postings=[Posting(account="a", amount_cents=7)])
            producer.produce("entries", entry.SerializeToString(), b"branch")
        producer.flush()
        submit = [Path(sys.executable).with_name("spark-submit"), "--jars", jars, file]
        options = ["--bootstrap", broker.bootstrap, "--checkpoint", tmp_path / "kept", "--mode", "exactly_once"]
        environment = os.environ | run.environment | {"PYSPARK_PYTHON": sys.executable}
        process = subprocess.Popen([*submit, *options], env=environment, cwd=tmp_path)

        balances: list[int] = []
        position, until = {0: 0, 1: 0}, time.monotonic() + DEADLINE_S
        while ENTRIES * 7 not in balances and process.poll() is None and time.monotonic() < until:
            time.sleep(LOOK_S)
            found = reading.records("balances", position, committed=True)
            balances += [json.loads(message.value())["balance_cents"] for message in found]
        process.send_signal(signal.SIGTERM)

        assert balances[-1] == ENTRIES * 7
        assert process.wait(DEADLINE_S) == 128 + signal.SIGTERM
        reading.close()
        broker.close()
