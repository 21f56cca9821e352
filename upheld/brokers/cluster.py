"""Three embedded nodes that replicate each other's partitions, for faults that one node cannot
show: who dies is replaced.

Each is broker and controller. A node that is silent is given up after two seconds and not after
nine, so that what it led or coordinated is soon with another one, and it is soon registered anew
when it comes back.
"""

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from upheld.brokers.embedded import EmbeddedBroker, Launch
from upheld.brokers.node import SETTINGS, await_ready, free_ports, listeners, new_cluster_id
from upheld.supervisor.reaper import RunScope

NODES = 3
SESSION_MS, HEARTBEAT_MS = 2_000, 200
SMALL_HEAP = "-Xmx160m"  # each has a third of the work
CLUSTER_SETTINGS: dict[str, str | int] = SETTINGS | {
    "broker.session.timeout.ms": SESSION_MS,
    "broker.heartbeat.interval.ms": HEARTBEAT_MS,
    "offsets.topic.replication.factor": NODES,
    "transaction.state.log.replication.factor": NODES,
    "transaction.state.log.min.isr": NODES - 1,
    "share.coordinator.state.topic.replication.factor": NODES,
    "share.coordinator.state.topic.min.isr": NODES - 1,
    "default.replication.factor": NODES,
    "min.insync.replicas": NODES - 1,
}


@dataclass
class Cluster:
    """Nodes of this run, by the ids that Kafka knows them by."""

    nodes: dict[int, EmbeddedBroker]
    away: set[int] = field(default_factory=set)  # those that we killed
    client: dict[str, str] = field(default_factory=dict, repr=False)
    kind: Literal["embedded"] = "embedded"
    ours: Literal[True] = True

    @property
    def bootstrap(self) -> str:
        """The address of each."""
        return ",".join(node.bootstrap for node in self.nodes.values())

    @property
    def version(self) -> str:
        """What runs there, and how many of it."""
        return f"{self.nodes[1].version}, {len(self.nodes)} nodes"

    @property
    def why(self) -> str:
        """A row wants to see one of them die."""
        return self.nodes[1].why

    @property
    def pids(self) -> list[int]:
        """A process for each node."""
        return [pid for node in self.nodes.values() for pid in node.pids]

    @property
    def log(self) -> Path:
        """What all of them have to say."""
        return self.nodes[1].log

    def kill(self, *numbers: int) -> None:
        """SIGKILL these nodes, or all; their data stays in the run's scratch folder."""
        for number in numbers or self.nodes:
            self.away.add(number)
            self.nodes[number].kill()

    def revive(self) -> None:
        """Start again what was killed, at its address and on its data, and wait until no partition
        lacks a replica.
        """
        for number in self.away:
            self.nodes[number].process = self.nodes[number].serve()
        self.away.clear()
        self.await_ready()

    def await_ready(self) -> None:
        """Return once all of them serve."""
        await_ready(self.bootstrap, self.client, self.nodes[1].cluster_id, self.ended, self.log)

    def ended(self, within_s: float) -> bool:
        """Whether a node that nobody killed ends before so many seconds are over."""
        left = [node for number, node in self.nodes.items() if number not in self.away]
        return any(node.ended(within_s / len(left)) for node in left)

    def close(self) -> None:
        """End them all: nobody reads their data again."""
        self.kill()


def open_cluster(run: RunScope, log_dir: Path, *, why: str) -> Cluster:
    """Three nodes that serve transactions and groups."""
    launch = Launch.found(run, log_dir / "cluster.log", why, SMALL_HEAP)
    return launch.on_free_ports(lambda: _start(launch))


def _start(launch: Launch) -> Cluster:
    numbers, cluster_id = range(1, NODES + 1), new_cluster_id()
    ports = iter(free_ports(3 * NODES))
    clients, internals, controllers = (
        {number: f"127.0.0.1:{next(ports)}" for number in numbers}
        for _ in ("clients", "brokers", "controllers")
    )
    voters = ",".join(f"{number}@{controllers[number]}" for number in numbers)
    homes = {number: launch.home(f"node-{number}") for number in numbers}

    def format_disk(number: int) -> None:
        client = (clients[number], clients[number])
        addresses = listeners(client, internals[number], controllers[number], "PLAINTEXT")
        own: dict[str, str | int] = {"node.id": number, "controller.quorum.voters": voters}
        launch.format(homes[number], cluster_id, addresses | own | CLUSTER_SETTINGS)

    with ThreadPoolExecutor() as pool:
        list(pool.map(format_disk, numbers))
    cluster = Cluster(
        {number: launch.node(homes[number], cluster_id, clients[number], {}) for number in numbers}
    )
    try:
        cluster.await_ready()
    except BaseException:
        cluster.close()
        for home in homes.values():
            shutil.rmtree(home, ignore_errors=True)
        raise
    return cluster
