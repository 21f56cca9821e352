"""One attempt at one scenario: its applications, instances and history.

A trial is a facade. Its components do the work, and record every fact in the history. A claim
judges the history as it stands.
"""

import contextlib
import shutil
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from hashlib import sha256
from typing import Any, TypedDict, Unpack

from confluent_kafka import KafkaException

from upheld.checks import CHECKS
from upheld.errors import MachineProblem
from upheld.generators.ledger import facts
from upheld.history import History, events
from upheld.history.marks import Look
from upheld.kafka.consumers import Position
from upheld.protocol.manifest import Manifest
from upheld.protocol.messages import Mode
from upheld.supervisor.instance import Instance
from upheld.supervisor.reaper import unmount
from upheld.trial.application import Application, Count, Wave
from upheld.trial.deployment import TRANSACTION_TIMEOUT_MS, Declaration, Deployments
from upheld.trial.instances import Instances, Launch
from upheld.trial.monitor import Monitor
from upheld.trial.probes import Probes, waits_ms
from upheld.trial.recorder import LifeEvent, Recorder
from upheld.trial.rig import Rig
from upheld.trial.waits import SETTLE_S, Waits
from upheld.trial.workload import Workload
from upheld.verdicts import NotOffered, Violated, worst_first

__all__ = ["SETTLE_S", "TRANSACTION_TIMEOUT_MS", "Trial"]


class _Declared(TypedDict, total=False):
    """What sentences say of an application, beside program, mode and partitions."""

    beside: int
    name: str
    upstream: str
    timeout_ms: int
    parameters: dict[str, int | str]
    rolls: bool


class _Launched(TypedDict, total=False):
    """What sentences say of the start of an instance."""

    in_place_of: str
    apart: bool
    cluster: str
    cold: bool
    default_mode: bool
    may_refuse: bool


class Trial:
    """One attempt at one scenario; however it goes, `close` ends what still runs."""

    def __init__(
        self, rig: Rig, manifest: Manifest, scenario: str, attempt: int, suffix: str = ""
    ) -> None:
        self.rig = rig
        self.manifest = manifest
        self.scenario = scenario
        self.attempt = attempt
        self.reading = rig.reading
        self.tags: frozenset[str] = frozenset()  # of the row: what it needs of the machine
        # The same for every row: what is drawn from it for one row is there for the next.
        self.seed = int.from_bytes(sha256(f"{rig.seed}:{attempt}".encode()).digest()[:6])
        stem = sha256(
            f"{manifest.name}:{scenario}:{attempt}:{time.time_ns()}".encode()
        ).hexdigest()[:8]
        self.application_id = f"trial-{rig.run.run_id[:6]}-{stem}"
        self.topics: dict[str, int] = {}  # on the broker at the end, with their partitions
        self.topic_bytes: int | None = None
        self.not_offered: NotOffered | None = None
        self.applications: dict[str, Application] = {}
        design = manifest.name.replace("/", "-")
        self.path = rig.out / "history" / f"{design}-{scenario}{suffix}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.history = History(path=self.path)
        self.recorder = Recorder(self.history, rig.time_scale)
        self.mark = self.recorder.mark
        self.deployments = Deployments(self.recorder, rig, manifest, self.application_id)
        self.workload = Workload(self.recorder, rig, manifest)
        self.probes = Probes(self.recorder, rig.reading, manifest)
        self.instances = Instances(self.recorder, rig, manifest, self.probes)
        self.monitor = Monitor(self.recorder, self.probes, self.instances)
        self.waits = Waits(self.recorder, rig, manifest, self.probes, self.instances, self.monitor)
        self._begin()

    def _begin(self) -> None:
        """Record what is tried, on what, and from which seed."""
        broker = self.rig.broker
        self.history.add(
            events.Begun(
                scenario=self.scenario,
                design=self.manifest.name,
                design_version=self.manifest.version,
                atomic=self.manifest.atomic,
                local_state=self.manifest.local_state,
                bytes_beside_table=self.manifest.bytes_beside_table,
                broker=f"{broker.kind} {broker.version}",
                seed=self.rig.seed,
                attempt=self.attempt,
                application_id=self.application_id,
                names_are_ours=broker.ours,
            )
        )

    @property
    def now_ms(self) -> int:
        """Return the milliseconds since the attempt began."""
        return self.recorder.now_ms

    def declare(self, declaration: Declaration) -> Application:
        """Deploy an application; before the second, record what is on the broker."""
        upstream = declaration.upstream
        topic = self.applications[upstream].writes if upstream else ""
        application = Application(self.deployments.declare(declaration, topic))
        self.applications[application.name] = application
        if len(self.applications) == 1:
            self.probes.look_at_names()
        return application

    def claim(self, check: str, application: Application, sentence: str, **arguments: Any) -> None:
        """Judge the history as it stands.

        If the design does not offer what this check judges, that is kept in `not_offered`: the
        scenario goes on, and may still be violated.

        Raises:
            Violated: The check finds an anomaly.
        """
        if check in {"side-effects", "no-topics"}:
            self.probes.look_at_names()
        if check == "footprint":
            self.probes.look_at_footprint(application, self._declared_topics())
        self.history.add(
            events.Claim(
                check=check, application=application.name, sentence=sentence, arguments=arguments
            )
        )
        try:
            anomalies = worst_first(CHECKS[check](self.history, application.name, **arguments))
        except NotOffered as reason:
            self.not_offered = self.not_offered or reason
            return
        if anomalies:
            raise Violated(anomalies)

    def waited_ms(self) -> dict[str, int]:
        """Return latency percentiles (share to milliseconds) from append to visibility.

        There are none if the outputs were not observed all along.
        """
        return waits_ms(self.history, self.applications.values())

    def close(self, *, gently: bool = True) -> None:
        """End what still runs, and delete disks and topics.

        Args:
            gently: A reusable instance is stopped, so that the next scenario can have it.
        """
        for application in self.applications.values():
            self.instances.end_all(application, gently=gently)
            if application.store:
                application.store.close()
            unmount(application.directory)
            shutil.rmtree(application.directory, ignore_errors=True)
            shutil.rmtree(application.kept, ignore_errors=True)
        self._count_topics()
        internal = {
            topic for event in self.history.of(events.Instance) for topic in event.internal_topics
        }
        self.reading.delete(self._declared_topics() | internal)
        if any(application.doors for application in self.applications.values()):
            self.rig.open_proxy()  # which says what it could not read

    def _declared_topics(self) -> set[str]:
        """Return the topics that the harness made for the applications."""
        return {
            topic
            for application in self.applications.values()
            for topic in application.event.topics.values()
        }

    def _count_topics(self) -> None:
        """Remember the topics of this attempt, and their bytes if the cluster shows them."""
        with contextlib.suppress(KafkaException, MachineProblem, OSError):
            self.topics = self.reading.sizes(self.application_id)
            self.topic_bytes = self.reading.raw.log_bytes(self.topics) if self.topics else 0

    # ======================================================================================
    # The names that sentences call. Each hands a call to the component that does it; all of
    # them go when the sentences call the components. Nothing else is to use them.
    # ======================================================================================

    def application(
        self,
        program: str,
        mode: Mode,
        partitions: int,
        *,
        sets_aside: bool = False,
        **said: Unpack[_Declared],
    ) -> Application:
        """Declare an application."""
        return self.declare(
            Declaration(program, mode, partitions, has_dead_letters=sets_aside, **said)
        )

    def wait(self, seconds: float, reached: Callable[[], bool]) -> bool:
        """Poll until a condition holds."""
        return self.recorder.wait(seconds, reached)

    def happened(
        self, application: Application, name: str, event: LifeEvent, detail: str = ""
    ) -> None:
        """Record an event in the life of an instance."""
        self.recorder.happened(application, name, event, detail)

    def feed(self, application: Application, wave: Wave, count: Count = facts) -> None:
        """Write the next wave of a workload."""
        self.workload.feed(application, wave, count)

    def feeding(self, application: Application, apart_s: float = 0) -> AbstractContextManager[None]:
        """Write wave after wave while the body runs."""
        return self.workload.feeding(application, apart_s)

    def look_at_input(self, application: Application) -> None:
        """Record the input as it stands in the log."""
        self.workload.look_at_input(application)

    def mark_the_rest(self, application: Application) -> None:
        """Mark how much of the input the last stop left for later."""
        self.workload.mark_unread(application)

    def ends(self, application: Application, look: Look | None = None) -> tuple[Position, Position]:
        """Return last stable offsets and high watermarks of the output topic."""
        return self.probes.ends(application, look)

    def look_at_store(self, application: Application) -> None:
        """Record the rows of the store."""
        self.probes.look_at_store(application)

    def look_outside(self, application: Application) -> None:
        """Record the side effects outside of Kafka."""
        self.probes.look_at_effects(application)

    def start(
        self, application: Application, name: str = "a", **launch: Unpack[_Launched]
    ) -> Instance | None:
        """Start an instance."""
        return self.instances.start(application, name, Launch(**launch))

    def stop(self, application: Application, name: str = "a", *, twice: bool = False) -> None:
        """Close an instance gracefully."""
        self.instances.stop(application, name, twice=twice)

    def kill(self, application: Application, name: str = "a") -> list[int]:
        """SIGKILL every process of an instance."""
        return self.instances.kill(application, name)

    def resume(self, application: Application, name: str = "a") -> None:
        """Let a paused instance go on."""
        self.instances.resume(application, name)

    def watch(self, application: Application, until_ms: int) -> None:
        """Record what comes out until then."""
        self.waits.watch(application, until_ms)

    def drain(self, application: Application, *, outputs_too: bool = True) -> None:
        """Wait until the input is drained."""
        self.waits.drain(application, outputs_too=outputs_too)

    def drain_again(self, application: Application) -> None:
        """Drain the input, and start instance a once more if it stops loudly."""
        self.waits.drain_again(application)

    def settle(
        self, application: Application, *, waits: bool = True, waited_ms: int | None = None
    ) -> None:
        """Wait until no transaction is open."""
        self.waits.settle(application, until_decided=waits, waited_ms=waited_ms)

    def catch_up(self, application: Application, within_ms: int) -> None:
        """Wait until the committed offsets are the ends of the input's log."""
        self.waits.catch_up(application, within_ms)

    def watch_release(self, application: Application) -> "Future[int]":
        """Measure how long a reader waits to pass what the outputs hold now."""
        return self.waits.watch_release(application)

    def expect_failure(self, application: Application) -> None:
        """Wait for the loud stop of instance a."""
        self.waits.expect_failure(application)

    def paused_input(self, application: Application, promised_ms: int) -> None:
        """Let the input rest until its outcome is visible."""
        self.waits.rest(application, promised_ms)

    def first_output(self, application: Application, within_ms: int) -> None:
        """Look for the first new output."""
        self.waits.first_output(application, within_ms)

    def ask_for_all(self, application: Application, within_ms: int) -> None:
        """Ask for every key of the table."""
        self.waits.query_all(application, within_ms)

    def measure(self, application: Application, *, times: int = 0, within_ms: int = 0) -> None:
        """Record how much state instance a says that it holds."""
        self.waits.measure(application, times=times, within_ms=within_ms)

    def await_cleaner(self, application: Application) -> None:
        """Watch rows come until the log cleaner has left fewer than half."""
        self.waits.await_cleaner(application)
