"""Three embedded nodes that replicate each other's partitions.

They serve faults that one node cannot show: a node that dies is replaced. Each node is broker and
controller. A silent node is given up after two seconds, and not after nine. So another node soon
leads and coordinates what was its own, and it is soon registered again when it comes back.
"""

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from upheld.brokers.embedded import EmbeddedBroker, Launch
from upheld.brokers.node import SETTINGS, await_ready, free_ports, listeners, new_cluster_id
from upheld.supervisor.reaper import RunScope

NODES: Final = 3
PORTS_OF_A_NODE: Final = 3  # for clients, for brokers, and for controllers
SESSION_MS: Final = 2_000
HEARTBEAT_MS: Final = 200
SMALL_HEAP: Final = "-Xmx160m"  # each has a third of the work
CLUSTER_SETTINGS: Final[dict[str, str | int]] = SETTINGS | {
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
    """Nodes of this run, by their ids in Kafka."""

    nodes: dict[int, EmbeddedBroker]
    away: set[int] = field(default_factory=set)  # those that the harness killed or silenced
    client: dict[str, str] = field(default_factory=dict, repr=False)
    kind: Literal["embedded"] = "embedded"
    ours: Literal[True] = True

    @property
    def bootstrap(self) -> str:
        """The addresses of all nodes."""
        return ",".join(node.bootstrap for node in self.nodes.values())

    @property
    def version(self) -> str:
        """The version that runs there, and the number of nodes."""
        return f"{self.nodes[1].version}, {len(self.nodes)} nodes"

    @property
    def why(self) -> str:
        """The reason for the cluster: a row has a node die."""
        return self.nodes[1].why

    @property
    def pids(self) -> list[int]:
        """The processes of all nodes."""
        return [pid for node in self.nodes.values() for pid in node.pids]

    @property
    def log(self) -> Path:
        """The log of all nodes."""
        return self.nodes[1].log

    def kill(self, *numbers: int) -> None:
        """SIGKILL these nodes, or all; their data stays in the run's scratch folder."""
        for number in numbers or self.nodes:
            self.away.add(number)
            self.nodes[number].kill()

    def silence(self, number: int) -> None:
        """SIGSTOP a node: its clients are not told, and wait for its responses.

        The cluster gives its partitions other leaders once its session is over.
        """
        self.away.add(number)
        self.nodes[number].pause()

    def revive(self) -> None:
        """Start the nodes that are away again, at their addresses and on their data.

        A silent node is killed before that, so that it never reads what was sent to it meanwhile.
        Return when no partition lacks a replica.
        """
        for number in self.away:
            self.nodes[number].kill()
            self.nodes[number].process = self.nodes[number].serve()
        self.away.clear()
        self.await_ready()

    def await_ready(self) -> None:
        """Return once all nodes serve."""
        await_ready(self.bootstrap, self.client, self.nodes[1].cluster_id, self.ended, self.log)

    def ended(self, within_s: float) -> bool:
        """Return whether a node that is not away ends within these seconds."""
        left = [node for number, node in self.nodes.items() if number not in self.away]
        return any(node.ended(within_s / len(left)) for node in left)

    def close(self) -> None:
        """End all nodes: their data is not read again."""
        self.kill()


def open_cluster(run: RunScope, log_dir: Path, *, why: str) -> Cluster:
    """Return three nodes that serve transactions and groups."""
    launch = Launch.found(run, log_dir / "cluster.log", why, SMALL_HEAP)
    return launch.on_free_ports(lambda: _start(launch))


def _start(launch: Launch) -> Cluster:
    numbers = range(1, NODES + 1)
    cluster_id = new_cluster_id()
    ports = iter(free_ports(PORTS_OF_A_NODE * NODES))

    def addresses_of_all() -> dict[int, str]:
        return {number: f"127.0.0.1:{next(ports)}" for number in numbers}

    clients = addresses_of_all()
    internals = addresses_of_all()
    controllers = addresses_of_all()
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
