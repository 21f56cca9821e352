"""The rig that all scenarios of a run share.

It holds the broker, the clients of the harness, warm instances, and the proxy.
"""

import sys
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from upheld.brokers import Broker
from upheld.brokers.ahead import Ahead
from upheld.brokers.cluster import open_cluster
from upheld.history.events import Record
from upheld.injectors.disk.watcher import Disk
from upheld.injectors.proxy.proxy import Proxy
from upheld.injectors.proxy.security import Security, secured
from upheld.judging.prerequisites import SECURED
from upheld.kafka.admin import Pace
from upheld.kafka.feed import Feed
from upheld.kafka.reading import Reading
from upheld.protocol.manifest import Manifest
from upheld.supervisor.instance import START_S, Instance
from upheld.supervisor.pool import Pool
from upheld.supervisor.reads import KnownReads
from upheld.supervisor.reaper import RunScope
from upheld.ui.console import waiting
from upheld.verdicts import AdapterBreach, MachineLacks, ProxyFailed

PROGRESS_S = 40.0  # an input that moves no further for so long is stuck
SESSION_TIMEOUT_MS = 2_000
# How often the harness's own brokers look for overdue transactions; the features' figures are for
# these brokers.
ABORT_CHECK_MS = 500


class Question(NamedTuple):
    """An input, and who is asked what comes of it."""

    design: str
    contract: str  # its name: a design with an adapter has one for each program
    mode: str
    partitions: tuple[int, ...]  # of each input
    inputs: str  # the digest of its visible records


class Given(NamedTuple):
    """The records of one output that come of an input in a run without a fault."""

    topic: str
    outputs: tuple[Record, ...]
    unstable: tuple[str, ...]
    is_ordered: bool
    is_by_last_value: bool = False
    types: tuple[tuple[str, ...], ...] = ()
    has_one_each: bool = False  # whether each input had one output
    output: str = ""  # the role of the topic; empty if the application has one output


@dataclass
class Rig:
    """The broker of a run and the harness's own clients on it, with what they need."""

    run: RunScope
    broker: Broker
    reading: Reading
    feed: Feed
    out: Path
    seed: int
    time_scale: float
    histories: Path  # the folder of all histories of a run, also of its other lanes
    # kind -> the address of one that was given
    stores: dict[str, str] = field(default_factory=dict)
    proxy: Proxy | None = None
    pools: dict[str, Pool] = field(default_factory=dict)  # by the identity of the design
    disk: Disk | None = None  # where designs are watched
    # (design, program) -> what its starts were seen to read
    known_reads: dict[tuple[str, str], KnownReads] = field(default_factory=dict)
    # What applications without a model gave for an input on each output, so that no input is asked
    # twice.
    answers: dict[Question, tuple[Given, ...]] = field(default_factory=dict)
    # Design -> the longest that a start of it took, from its process to `ready`.
    starts_s: dict[str, float] = field(default_factory=dict)
    # Design -> by how much the timeouts that it asks for itself are longer than usual.
    slower_ms: dict[str, int] = field(default_factory=dict)
    another: Ahead | None = None  # further brokers of the kind of this run, each for a row
    is_of_a_row: bool = False  # whether its broker ends with the row
    cluster: "Rig | None" = None  # the same on three brokers, while rows want them
    securities: dict[str, Security] = field(default_factory=dict)  # by their protocols

    def log_name(self, path: Path) -> str:
        """Return the path of a log from the folder of the run on: `lane-1/logs/a.stderr`.

        Each lane numbers its instances by itself, so a name alone may be that of several logs.
        """
        return path.relative_to(self.histories.parent).as_posix()

    def of_a_row(self, manifest: Manifest, *, on_a_cluster: bool = False) -> "Rig":
        """Return the rig for one row of a design, or for one run without a fault.

        A design whose names are fixed has a broker of its own there, which `end_row` ends. On a
        broker of others its rows would meet. The next one starts meanwhile.

        Raises:
            MachineLacks: The broker of the run is somebody else's.
            MachineProblem: No further broker can be started.
        """
        if on_a_cluster:
            if manifest.has_fixed_names:
                self.end_cluster()
            return self.on_a_cluster()
        if not manifest.has_fixed_names:
            return self
        if self.another is None:
            raise MachineLacks("names are fixed, and no broker can be started for each row")
        with waiting("a broker for one row starts"):
            broker = self.another.take()
        self.another.prepare()
        reading = Reading(broker.bootstrap, broker.client)
        reading.canary(f"upheld-canary-{self.run.run_id}")
        feed = Feed(reading.settings, self.run.run_id)
        return replace(
            self, broker=broker, reading=reading, feed=feed, proxy=None, is_of_a_row=True
        )

    def rest(self, manifest: Manifest) -> None:
        """Wait until nothing boots, so that a measurement has the machine for itself."""
        self.pool(manifest).rest()
        if self.another:
            self.another.rest()

    def end_row(self) -> None:
        """End the broker of this row, and the clients on it; another broker stays."""
        if not self.is_of_a_row:
            return
        if self.proxy:
            self.proxy.close()
        self.reading.close()
        self.broker.close()

    def on_a_cluster(self) -> "Rig":
        """Return the same rig on a cluster of three brokers.

        The cluster starts for the first row that wants it.

        Raises:
            MachineLacks: The broker of the run is not the harness's own.
        """
        if not self.broker.ours:
            raise MachineLacks("no node of somebody else's cluster is killed")
        if self.cluster is None:
            with waiting("a cluster of three brokers starts"):
                broker = open_cluster(self.run, self.out / "logs", why="one of its nodes is to die")
            reading = Reading(broker.bootstrap, broker.client)
            feed = Feed(reading.settings, self.run.run_id)
            self.cluster = replace(self, broker=broker, reading=reading, feed=feed, proxy=None)
        return self.cluster

    def end_cluster(self) -> None:
        """End the three brokers, if there are any: other rows want the memory."""
        if self.cluster:
            self.cluster.reading.close()
            self.cluster.broker.close()
            self.cluster = None

    @property
    def is_secured(self) -> bool:
        """Whether the broker's connections are secured.

        The proxy can read no request on secured connections.
        """
        return self.broker.client.get("security.protocol", "plaintext") != "plaintext"

    def security_of(self, manifest: Manifest) -> Security | None:
        """Return how a design reaches the proxy; None if it does so in plain text.

        A broker whose connections are secured is reached by its own client properties.

        Raises:
            MachineProblem: The extra `tls` is not installed.
        """
        protocol = manifest.security
        if protocol == "plaintext" or self.is_secured:
            return None
        if protocol not in self.securities:
            folder = self.run.scratch / f"security-{protocol}"
            self.securities[protocol] = secured(protocol, folder)
        return self.securities[protocol]

    def client_of(self, manifest: Manifest) -> dict[str, str]:
        """Return the security properties that a design is told, by their librdkafka names."""
        security = self.security_of(manifest)
        return security.client if security else self.broker.client

    def renew_clients(self) -> None:
        """Replace the harness's own clients, one of which failed."""
        for rig in filter(None, (self, self.cluster)):
            rig.reading.reconnect()
            rig.feed = Feed(rig.reading.settings, rig.run.run_id)

    @cached_property
    def pace(self) -> Pace:
        """Return how long the broker makes its clients wait.

        The harness's own broker is quick; an external cluster may not be.
        """
        return self.reading.pace()

    @property
    def session_timeout_ms(self) -> int:
        """Return the shortest session timeout that the broker allows, 2 seconds at least."""
        return max(SESSION_TIMEOUT_MS, self.pace.min_session_ms)

    @property
    def later_abort_ms(self) -> int:
        """Return how much later than by our own broker an overdue transaction is aborted."""
        return max(0, self.pace.abort_check_ms - ABORT_CHECK_MS)

    @property
    def progress_s(self) -> float:
        """Return the seconds after which an input that moves no further is stuck.

        They include the time for a dead member, a rebalance and an abort, with the timeouts that a
        design asks for itself.
        """
        slower_ms = (
            self.session_timeout_ms
            - SESSION_TIMEOUT_MS
            + self.pace.abort_check_ms
            + self.pace.rebalance_ms
            + max(self.slower_ms.values(), default=0)
        )
        return PROGRESS_S + slower_ms / 1000

    def pool(self, manifest: Manifest) -> Pool:
        """Return the pool of warm instances of a design; close those of other designs.

        Two releases that are judged together are both kept.
        """
        if manifest.identity not in self.pools:
            # One design at a time keeps memory and the two cores for itself.
            for identity, other in list(self.pools.items()):
                if not _are_releases(manifest, other.manifest):
                    other.close()
                    del self.pools[identity]
            launch = self.disk.launch if self.disk else None
            pool = Pool(
                manifest, self.run, self.out / "logs", time_scale=self.time_scale, launch=launch
            )
            if not self.pools:
                self.slower_ms.clear()
            self.pools[manifest.identity] = pool
        return self.pools[manifest.identity]

    def measured(self, manifest: Manifest, start_s: float) -> None:
        """Remember how long a start of a design took, from its process to `ready`."""
        known_s = self.starts_s.get(manifest.name, 0.0)
        self.starts_s[manifest.name] = max(known_s, start_s)

    def start_s(self, manifest: Manifest) -> float:
        """Return the longest that a start of a design took.

        Until one was measured, it is half of the time that a design has for a start.
        """
        return self.starts_s.get(manifest.name, START_S * self.time_scale / 2)

    def take(self, manifest: Manifest, environment: dict[str, str] | None = None) -> Instance:
        """Take a warm instance, or boot one with this environment.

        The user is told while a boot is being waited for.
        """
        first = manifest.identity not in self.pools
        pool = self.pool(manifest)
        own = environment is not None
        with waiting(f"{manifest.name} boots") if first or own else nullcontext():
            return pool.take() if environment is None else pool.boot(environment)

    def open_proxy(self) -> Proxy:
        """Return the proxy before the broker, which the first call starts.

        Raises:
            MachineLacks: The broker's connections are secured, so no request on them can be read.
            ProxyFailed: The proxy has failed, or could not read a message.
            AdapterBreach: A client of the design sent what no broker takes.
        """
        if self.is_secured:
            raise MachineLacks(SECURED)
        if self.proxy is None:
            self.proxy = Proxy(self.broker.bootstrap)
        trouble = self.proxy.look()
        if trouble.failure:
            raise ProxyFailed(trouble.failure)
        if trouble.breach:
            raise AdapterBreach(f"{trouble.breach}, which no broker takes.")
        return self.proxy

    def close(self) -> None:
        """End every instance and client, and the cluster; the owner ends the broker.

        A broker that outlives the run keeps no topic and no group of it.
        """
        self.end_cluster()
        if self.another:
            self.another.close()
        for pool in self.pools.values():
            pool.close()
        if self.proxy:
            self.proxy.close()
        if not self.broker.ours:
            leave(self.reading)
        self.reading.close()


def _are_releases(one: Manifest, other: Manifest) -> bool:
    """Return whether one of two designs is the release before the other."""
    pairs = ((one, other), (other, one))
    return any(new.previous and new.previous.identity == old.identity for new, old in pairs)


def leave(reading: Reading) -> None:
    """Delete what the harness made on a lasting cluster, and name what stays."""
    with waiting("the topics and groups of this run are deleted"):
        left = reading.leave()
    if left:
        print(
            f"upheld: on the cluster stay {', '.join(left)}; please delete them by hand.",
            file=sys.stderr,
        )
