"""One attempt at one scenario: its applications, instances and history.

A trial is a facade. Its components do the work, and record every fact in the history. A claim
judges the history as it stands.
"""

import contextlib
import secrets
from collections import Counter
from hashlib import sha256
from typing import Any, NamedTuple

from confluent_kafka import KafkaException

from upheld.checks import CHECKS
from upheld.checks.delivery import Shown, shown_of
from upheld.checks.registry import demand
from upheld.errors import MachineProblem
from upheld.history import History, events
from upheld.judging.scenario import UPSTREAM, struck_before
from upheld.protocol.manifest import Manifest
from upheld.spec.gherkin import Row
from upheld.supervisor.reaper import unmount
from upheld.trial.application import Application
from upheld.trial.deployment import Declaration, Deployments
from upheld.trial.ending import Ending
from upheld.trial.instances import Instances
from upheld.trial.monitor import Monitor
from upheld.trial.oracle import Oracle
from upheld.trial.probes import Probes, waits_ms
from upheld.trial.recorder import Recorder
from upheld.trial.rig import Rig
from upheld.trial.waits import Waits
from upheld.trial.workload import Workload
from upheld.verdicts import AdapterBreach, Inconclusive, NotOffered, Violated, worst_first

ID_BYTES = 8  # of an application id, at random


class Asked(NamedTuple):
    """The scenario that an attempt is made at.

    Attributes:
        scenario: Its row's id.
        claims: Its sentences that judge, in order.
        row: The row, whose faults leave marks; None if it is of no feature.
    """

    scenario: str
    claims: tuple[str, ...]
    row: Row | None = None


class Trial:
    """One attempt at one scenario; however it goes, `close` ends what still runs."""

    def __init__(
        self, rig: Rig, manifest: Manifest, asked: Asked, attempt: int, suffix: str = ""
    ) -> None:
        self.rig = rig
        self.manifest = manifest
        scenario = asked.scenario
        self.asked = asked
        self.made = Counter[tuple[str, str]]()  # claims: sentence and application
        self.attempt = attempt
        self.reading = rig.reading
        self.tags: frozenset[str] = frozenset()  # of the row: what it needs of the machine
        # The same for every row: what is drawn from it for one row is there for the next.
        self.seed = int.from_bytes(sha256(f"{rig.seed}:{attempt}".encode()).digest()[:6])
        # Random: no other attempt ever has it, and a topic under it is this attempt's.
        self.application_id = f"trial-{rig.run.run_id[:6]}-{secrets.token_hex(ID_BYTES)}"
        self.topics: dict[str, int] = {}  # on the broker at the end, with their partitions
        self.topic_bytes: int | None = None
        # Why a claim could not be judged: the first one that was inconclusive, or else the first.
        self.unproved: Inconclusive | NotOffered | None = None
        self.applications: dict[str, Application] = {}
        design = manifest.name.replace("/", "-")
        self.path = rig.histories / f"{design}-{scenario}{suffix}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.history = History(path=self.path)
        self.recorder = Recorder(self.history, rig.time_scale)
        self.mark = self.recorder.mark
        self.deployments = Deployments(self.recorder, rig, manifest, self.application_id)
        oracle = Oracle(self.recorder, rig, manifest)
        self.workload = Workload(self.recorder, rig, manifest, oracle)
        self.probes = Probes(self.recorder, rig.reading, manifest)
        self.instances = Instances(self.recorder, rig, manifest, self.probes)
        self.monitor = Monitor(self.recorder, self.probes, self.instances)
        self.waits = Waits(self.recorder, rig, manifest, self.probes, self.instances, self.monitor)
        self.ending = Ending(self.recorder, self.probes, self.workload)
        self._begin()

    def _begin(self) -> None:
        """Record the scenario, the design, the broker and the seed."""
        broker = self.rig.broker
        self.history.add(
            events.Begun(
                scenario=self.asked.scenario,
                design=self.manifest.name,
                design_version=self.manifest.version,
                follows=self.manifest.previous.called if self.manifest.previous else "",
                atomic=self.manifest.atomic,
                local_state=self.manifest.local_state,
                progress=self.manifest.progress,
                bytes_beside_table=self.manifest.bytes_beside_table,
                cannot=self.manifest.cannot,
                emits=self.manifest.emits,
                broker=f"{broker.kind} {broker.version}",
                seed=self.rig.seed,
                attempt=self.attempt,
                application_id=self.application_id,
                names_are_ours=broker.ours and not self.manifest.has_fixed_names,
                claims=self.asked.claims,
            )
        )

    @property
    def now_ms(self) -> int:
        """Return the milliseconds since the attempt began."""
        return self.recorder.now_ms

    def declare(self, declaration: Declaration) -> Application:
        """Deploy an application; after the first one, record the names on the broker."""
        if not self.applications:
            self.reading.reserve(self.application_id, groups_too=not self.rig.broker.ours)
        upstream = declaration.upstream
        topic = self.applications[upstream].writes if upstream else ""
        application = Application(
            self.deployments.declare(declaration, topic), progress=self.manifest.progress
        )
        self.applications[application.name] = application
        if len(self.applications) == 1:
            self.probes.look_at_names()
        return application

    def claim(self, check: str, application: Application, sentence: str, **arguments: Any) -> None:
        """Judge the history as it stands.

        If the check cannot judge this design or this history, the reason is kept in `unproved`.
        The scenario goes on, and may still be violated.

        Raises:
            Violated: The check finds an anomaly.
        """
        if check in {"side-effects", "no-topics"}:
            self.probes.look_at_names()
        if check in {"fold", "whole-or-refused"}:
            self.workload.oracle.ask_below_the_commit(application)
        if check == "footprint":
            self.probes.look_at_footprint(application, self._declared_topics())
        self.history.add(
            events.Claim(
                check=check, application=application.name, sentence=sentence, arguments=arguments
            )
        )
        struck = struck_before(self.asked.row, sentence, self.made[sentence, application.name])
        self.made[sentence, application.name] += 1
        try:
            demand(check, self.history, application.name, struck)
            anomalies = worst_first(CHECKS[check](self.history, application.name, **arguments))
        except NotOffered as reason:
            self.unproved = self.unproved or reason
        except Inconclusive as reason:
            if not isinstance(self.unproved, Inconclusive):
                self.unproved = reason
        else:
            if anomalies:
                raise Violated(anomalies)

    def outcome(self, ended: BaseException | None) -> BaseException | None:
        """Return what decides the verdict: the attempt's end, or a claim without proof."""
        if ended is None or (isinstance(ended, NotOffered) and self.unproved):
            return self.unproved
        return ended

    def waited_ms(self) -> dict[str, int]:
        """Return latency percentiles (share to milliseconds) from append to visibility.

        There are none if the outputs were not observed all along.
        """
        return waits_ms(self.history, self.applications.values())

    def states_shown(self) -> Shown:
        """Return how many states were due and shown, if the design may skip some."""
        return shown_of(self.history, self.applications)

    def looked_at(self, ended: Violated) -> Violated:
        """Return a violation as the log shows it, before the topics are gone."""
        judged = (each for name, each in self.applications.items() if name != UPSTREAM)
        return self.ending.judged(ended, judged)

    def close(self, *, gently: bool = True) -> None:
        """End all instances, and delete disks and topics.

        Args:
            gently: A reusable instance is stopped, so that the next scenario can have it.
        """
        for application in self.applications.values():
            self.instances.end_all(application, gently=gently)
            if application.store:
                application.store.close()
            unmount(application.directory)
            for folder in (application.disks, application.kept):
                with contextlib.suppress(AdapterBreach, OSError):  # the reaper removes the rest
                    folder.remove()
        with contextlib.suppress(KafkaException, MachineProblem, OSError):
            self._count_topics()
            self.reading.clear(self.application_id)
        try:
            if any(application.doors for application in self.applications.values()):
                self.rig.open_proxy()  # which raises if there was a request that it could not read
        finally:
            self.rig.end_row()

    def _declared_topics(self) -> set[str]:
        """Return the topics that the harness made for the applications."""
        return {
            topic
            for application in self.applications.values()
            for topic in application.event.topics.values()
        }

    def _count_topics(self) -> None:
        """Remember the topics of this attempt, and their bytes if the cluster shows them."""
        self.topics = self.reading.sizes(self.application_id)
        self.topic_bytes = self.reading.raw.log_bytes(self.topics) if self.topics else 0
