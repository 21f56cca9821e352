"""A hostile design does nothing to a cluster and a disk of others.

The cluster is the user's. Its topics and groups are the same before and after each run, and so is a
foreign folder that the design links to.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from upheld.brokers.embedded import EmbeddedBroker, open_embedded
from upheld.supervisor.reaper import RunScope

UPHELD = str(Path(sys.executable).with_name("upheld"))
DEADLINE_S = 240.0
ANSWER_S = 10.0
PRECIOUS = "a foreign file that has to stay as it is"
QUIET = ["--only", "@G22.dies-after-a-commit", "--program", "ledger"]
TORN = ["--only", "@G57.torn-checkpoint", "--program", "ledger", "--mode", "at_least_once"]

MANIFEST = """
name = "hostile"
version = "1"
command = ["{python}", "hostile.py"]
programs = ["ledger"]
modes = ["at_least_once", "exactly_once"]
capabilities = ["reusable"]
local_state = true
"""
DESIGN = """
import os, shutil, sys
from pathlib import Path
from confluent_kafka.admin import AdminClient, NewTopic
from upheld.adapter import serve
from upheld.impl.plain import Plain

FOREIGN = Path(__file__).parent / "foreign"

class Hostile(Plain):
    hello = Plain.hello | {{
        "name": "hostile", "programs": ["ledger"], "capabilities": ["reusable"]
    }}

    def open(self, start):
        ready = super().open(start)
        own = start["application_id"]
        state = Path(start["state_dir"])
        durable = Path(start["durable_dir"])
        if not os.path.lexists(durable / "events"):
            (durable / "events").write_text("x" * 100)
            {act}
        return ready

serve(Hostile())
"""


class Case(NamedTuple):
    """An act of a hostile design at its start, and what is said of it."""

    act: str
    row: list[str]
    said: str


CASES = {
    "names a foreign topic": Case(
        'ready["internal_topics"] = ["payments"]', QUIET, "internal_topics 'payments'"
    ),
    "calls a foreign topic its table": Case(
        'ready["table"] = "payments"', QUIET, "table 'payments'"
    ),
    "calls an input its table": Case(
        'ready["table"] = start["topics"]["entries"]', QUIET, "is an input"
    ),
    "names a table that it never made": Case(
        'ready["table"] = f"{own}-none"', QUIET, "the broker has no such topic"
    ),
    "names a huge group": Case(
        'ready["consumer_group"] = "g" * 900_000', QUIET, "has 900000 bytes"
    ),
    "makes topics that it does not name": Case(
        "admin = AdminClient(self.client); made = admin.create_topics("
        '[NewTopic(f"{own}-{n}", 1) for n in range(200)]); '
        "[each.result(60) for each in made.values()]",
        QUIET,
        "is not declared in internal_topics",
    ),
    "makes its state a link": Case(
        "shutil.rmtree(state); state.symlink_to(FOREIGN)", TORN, "/a is a symbolic link"
    ),
    "links to a foreign file": Case(
        '(durable / "newest").symlink_to(FOREIGN / "victim")', TORN, "newest is a symbolic link"
    ),
    "has a foreign file as its own": Case(
        'os.link(FOREIGN / "victim", durable / "newest"); '
        'os.utime(durable / "newest", (2**31, 2**31))',
        TORN,
        "newest is a hard link",
    ),
    "makes all of its disks a link": Case(
        "above = state.parent; shutil.rmtree(above); above.symlink_to(FOREIGN)",
        TORN,
        "ledger is a symbolic link",
    ),
    "leaves a pipe": Case('os.mkfifo(durable / "pipe")', TORN, "durable/pipe is a pipe"),
    "takes its disks away": Case("shutil.rmtree(state.parent)", TORN, "cannot be opened"),
}


class Cluster(NamedTuple):
    """The user's cluster, and a client of it."""

    broker: EmbeddedBroker
    admin: AdminClient

    def names(self) -> tuple[list[str], list[str]]:
        """Return all topics and all groups, sorted."""
        groups = self.admin.list_consumer_groups().result(ANSWER_S).valid
        return (
            sorted(self.admin.list_topics(timeout=ANSWER_S).topics),
            sorted(group.group_id for group in groups),
        )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield a cluster with a topic and a group of others."""
    with RunScope() as run:
        broker = open_embedded(run, tmp_path_factory.mktemp("logs"), why="a test")
        settings = {"bootstrap.servers": broker.bootstrap}
        admin = AdminClient(settings)
        for made in admin.create_topics([NewTopic("payments", 1), NewTopic("billing", 1)]).values():
            made.result(ANSWER_S)
        producer = Producer(settings)
        producer.produce("payments", b"precious")
        producer.flush(ANSWER_S)
        consumer = Consumer(settings | {"group.id": "billing"})
        consumer.commit(offsets=[TopicPartition("payments", 0, 1)], asynchronous=False)
        consumer.close()
        # What Kafka makes for itself at a first transaction is there before the first look.
        transactional = Producer(settings | {"transactional.id": "billing"})
        transactional.init_transactions(ANSWER_S)
        yield Cluster(broker, admin)
        broker.close()


def ended(command: str, design: str, options: list[str], cluster: Cluster, cwd: Path) -> Any:
    """Run a command of the harness on the cluster, and return how it ended."""
    bootstrap = ["--broker", "external", "--bootstrap", cluster.broker.bootstrap]
    return subprocess.run(
        [UPHELD, command, "--design", design, *options, *bootstrap],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_hostile_design(cluster: Cluster, tmp_path: Path, case: Case) -> None:
    """The design is blamed; cluster and foreign folder stay as they were."""
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "victim").write_text(PRECIOUS)
    (tmp_path / "design.toml").write_text(MANIFEST)
    (tmp_path / "hostile.py").write_text(DESIGN.format(act=case.act))
    before = cluster.names()

    end = ended(
        "run", str(tmp_path), [*case.row, "--out", str(tmp_path / "out")], cluster, tmp_path
    )

    report = (tmp_path / "out" / "report.jsonl").read_text()
    rows = [row for row in map(json.loads, report.splitlines()) if row.get("id")]
    assert rows, end.stderr
    for row in rows:
        texts = [row["reason"], *(anomaly["text"] for anomaly in row["anomalies"])]
        assert any(case.said in text for text in texts), row
        assert row["code"] == "adapter-breach" or row["verdict"] == "violated"
    assert "Traceback" not in end.stdout + end.stderr
    assert cluster.names() == before
    assert {path.name: path.read_text() for path in foreign.iterdir()} == {"victim": PRECIOUS}


@pytest.mark.parametrize(("command", "options"), [("smoke", []), ("run", QUIET)])
def test_a_right_design_leaves_nothing(
    cluster: Cluster, tmp_path: Path, command: str, options: list[str]
) -> None:
    """Its topics and groups are gone, as is the canary of the harness."""
    (tmp_path / "design.toml").write_text(MANIFEST)
    (tmp_path / "hostile.py").write_text(DESIGN.format(act="pass"))
    before = cluster.names()

    end = ended(command, str(tmp_path), options, cluster, tmp_path)

    assert end.returncode == 0, end.stdout + end.stderr
    assert cluster.names() == before == (cluster.names()[0], ["billing"])
