"""One attempt at one scenario: applications, their instances, what is done to them, and the history
of it all.

Steps call this; it records every fact in the history, and a claim judges the history as it stands.
Deadlines and settle times scale with `time_scale`, promised tolerances never do.
"""

import contextlib
import json
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from math import ceil, inf
from typing import Any

from confluent_kafka import KafkaException

from upheld.checks import CHECKS
from upheld.checks.delivery import waits_of
from upheld.checks.stores import unsettled
from upheld.checks.view import view_of
from upheld.errors import MachineProblem
from upheld.generators.ledger import Send, facts
from upheld.history import History, events
from upheld.history.marks import Happening, Look
from upheld.injectors.proxy import EFFECTS
from upheld.kafka.raw import RawClient, is_left_open
from upheld.kafka.reader import Position, recorded
from upheld.programs import DEAD_LETTERS, PROGRAMS
from upheld.protocol.manifest import Manifest
from upheld.protocol.messages import (
    Error,
    Failed,
    Lagging,
    Measured,
    Mode,
    NotReady,
    Ready,
    StandingBy,
    Start,
    Stopped,
    Unsupported,
    Value,
)
from upheld.stores import STORES
from upheld.supervisor.costs import peak_bytes
from upheld.supervisor.host import Cores, own_bytes
from upheld.supervisor.instance import Instance, Silence
from upheld.supervisor.reaper import unmount
from upheld.trial.application import Application
from upheld.trial.rig import Rig
from upheld.verdicts import (
    AdapterBreach,
    HarnessError,
    MarkMissed,
    NotOffered,
    Violated,
    worst_first,
)

SETTLE_S = 1.5  # how long nothing may follow a recorded end
POLL_S = 0.02
# How often an input that is being drained is asked whether it moves, beside whether it is drained.
PROGRESS_LOOK_S = 0.1
STOP_MS = 10_000
LAG_EVERY_MS = 100
BLIND_MS = 1_500  # what is visible is seen later by so much, at most
CLEANED_MS = 500  # how often the cleaner has a look on our brokers
SHARES = {"50 %": 0.5, "99 %": 0.99, "99.99 %": 0.9999}
ASKED_AT_ONCE = 16  # keys of a table, when an instance has just said that it is ready
TRANSACTION_TIMEOUT_MS = 3_000


class Trial:
    """One attempt. `close` ends whatever still runs, whatever happened."""

    def __init__(
        self, rig: Rig, manifest: Manifest, scenario: str, attempt: int, suffix: str = ""
    ) -> None:
        self.rig, self.manifest, self.scenario, self.attempt = rig, manifest, scenario, attempt
        self.reading = rig.reading
        self.tags: frozenset[str] = frozenset()  # of the row: what it needs of the machine
        # The same for every row: what one has made of it is there for the next.
        self.seed = int.from_bytes(sha256(f"{rig.seed}:{attempt}".encode()).digest()[:6])
        stem = sha256(
            f"{manifest.name}:{scenario}:{attempt}:{time.time_ns()}".encode()
        ).hexdigest()[:8]
        self.application_id = f"trial-{rig.run.run_id[:6]}-{stem}"
        self.began = time.monotonic()
        self.cores = Cores()  # since then, or since the last pause of an input
        self.kills = 0
        self.peak_bytes = 0  # of an instance's processes
        # That were on the broker at the end, with their partitions.
        self.topics: dict[str, int] = {}
        self.topic_bytes: int | None = None
        self.not_offered: NotOffered | None = None
        self.applications: dict[str, Application] = {}
        self.path = path = (
            rig.out / "history" / f"{manifest.name.replace('/', '-')}-{scenario}{suffix}.jsonl"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        self.history = History(path=path)
        self.history.add(
            events.Begun(
                scenario=scenario,
                design=manifest.name,
                design_version=manifest.version,
                atomic=manifest.atomic,
                local_state=manifest.local_state,
                bytes_beside_table=manifest.bytes_beside_table,
                broker=f"{rig.broker.kind} {rig.broker.version}",
                seed=rig.seed,
                attempt=attempt,
                application_id=self.application_id,
                names_are_ours=rig.broker.ours,
            )
        )

    # --- time

    @property
    def now_ms(self) -> int:
        """Milliseconds since the attempt began."""
        return round((time.monotonic() - self.began) * 1000)

    def wait(self, seconds: float, reached: Callable[[], bool]) -> bool:
        """Poll until something is so, or the scaled deadline passes."""
        deadline = time.monotonic() + seconds * self.rig.time_scale
        while not reached():
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        return True

    def watch(self, application: Application, until_ms: int) -> None:
        """See what comes out until then; Violated where an instance gives up or vanishes
        meanwhile.
        """
        while self.now_ms < until_ms:
            self.look_after(application)
            self.observe(application)

    def decided_s(self, application: Application) -> float:
        """By then every transaction is decided, if need be by the broker."""
        return application.event.transaction_timeout_ms / 1000 + self.rig.progress_s

    # --- applications and input

    def application(  # noqa: PLR0913 (what an application is, all but the first by name)
        self,
        program: str,
        mode: Mode,
        partitions: int,
        *,
        beside: int = 0,
        name: str = "",
        upstream: str = "",
        timeout_ms: int = 0,
        parameters: dict[str, int | str] | None = None,
        rolls: bool = False,
        sets_aside: bool = False,
    ) -> Application:
        """Declare an application and create its topics; with an upstream its input is that
        application's output.

        A second input has `beside` partitions, or as many as the first. A table that rolls has a
        new segment every second. One that sets aside what it cannot read has a topic for that.
        """
        contract, name = PROGRAMS[program], name or program
        identity = f"{self.application_id}-{name}"
        roles = [*contract.topics, *([DEAD_LETTERS] if sets_aside else [])]
        topics = {role: f"{identity}-{role}" for role in roles}
        new = dict(topics)
        if upstream:
            topics[contract.reads] = self.applications[upstream].writes
            del new[contract.reads]
        event = events.Application(
            name=name,
            application_id=identity,
            program=program,
            mode=mode,
            topics=topics,
            parameters=contract.parameters | (parameters or {}),
            transaction_timeout_ms=timeout_ms or TRANSACTION_TIMEOUT_MS,
        )
        self.history.add(event)
        directory, store = self.rig.run.scratch / identity, None
        if kind := event.parameters.get("store"):
            if kind not in self.manifest.capabilities:
                raise NotOffered(
                    f"{self.manifest.name} keeps no state in {kind} (capability {kind})"
                )
            store = STORES[str(kind)](
                self.rig.run, directory, identity, self.rig.stores.get(str(kind), "")
            )
        inputs = {topics[role]: partitions for role in contract.inputs}
        if beside:
            inputs[topics[contract.beside]] = beside
        outputs = -(-partitions // contract.narrows)
        self.reading.create(
            {topic: inputs.get(topic, outputs) for topic in new.values()},
            stamped={topics[contract.writes]} if contract.holds_back else set(),
            compacted={topics[contract.writes]} if contract.merged else set(),
            rolling={topics[contract.writes]} if rolls else set(),
        )
        application = Application(name, contract, event, outputs, inputs, directory, store=store)
        self.applications[name] = application
        if len(self.applications) == 1:
            self._names()
        return application

    def _names(self) -> None:
        topics, groups, ids = self.reading.names()
        self.history.add(
            events.Names(at_ms=self.now_ms, topics=topics, groups=groups, transactional_ids=ids)
        )

    def feed(
        self,
        application: Application,
        wave: Callable[..., Sequence[Send]],
        count: Callable[[tuple[Send, ...]], dict[str, int]] = facts,
    ) -> None:
        """Write the next wave of a workload to the application's input, and read back what the log
        made of it.
        """
        application.wave, application.count = wave, count
        self.feed_more(application)

    def feed_more(self, application: Application) -> None:
        """Write one more wave of the last workload, and read it back when nothing in it waits for
        an end of transaction.
        """
        self._write(application)
        if not self.wait(self.rig.progress_s, partial(self._is_decided, application)):
            raise HarnessError(
                f"a transaction that ends in the input of {application.name} is still open on the "
                "broker"
            )
        self.look_at_input(application)

    def _is_decided(self, application: Application) -> bool:
        ends = (
            self.reading.ends(topic, partitions) for topic, partitions in application.inputs.items()
        )
        return all(stable == end for stable, end in ends)

    def _write(self, application: Application) -> None:
        assert application.wave
        sends = tuple(application.wave(wave=application.waves))
        ends = self.rig.feed.write(application.event.topics, application.program.reads, sends)
        application.fed_ms = self.now_ms
        for place, end in ends.items():
            application.appended.setdefault(place, []).append((end, application.fed_ms))
        application.fed = {
            application.event.topics[send.role or application.program.reads] for send in sends
        }
        application.waves += 1
        if application.program.merged:
            told = {(send.key or b"").decode() for send in sends if not send.aborted}
            application.keys += sorted(told - set(application.keys))
        for name, count in application.count(sends).items():
            application.workload[name] = application.workload.get(name, 0) + count

    @contextlib.contextmanager
    def feeding(self, application: Application, apart_s: float = 0) -> Iterator[None]:
        """Write wave after wave of the last workload meanwhile, so far apart, and read them back at
        the end.
        """
        over = threading.Event()

        def write() -> None:
            while not over.wait(apart_s):
                self._write(application)

        thread = threading.Thread(target=write, name="feeding", daemon=True)
        thread.start()
        application.is_fed, application.observed_ms = True, self.now_ms
        try:
            yield
        finally:
            over.set()
            thread.join()
            application.is_fed = False
        self.look_at_input(application)

    def look_at_input(self, application: Application) -> None:
        """Record the input as it stands in the log, visible or aborted; what we wrote is there
        since its wave was.
        """
        with ThreadPoolExecutor() as pool:  # each read waits for the broker, and none for another
            reads = {
                (topic, committed): pool.submit(self._new, application, topic, committed=committed)
                for topic in application.inputs
                for committed in (True, False)
            }
        for topic in application.inputs:
            visible = [(m.partition(), m.offset()) for m in reads[topic, True].result()]
            log, since = reads[topic, False].result(), application.since(topic, self.now_ms)
            self.history.add_all(
                recorded(log, since, set(visible), application.incarnations[topic])
            )
            for partition, offset in dict(visible).items():  # of each partition the last
                place = f"{topic}-{partition}"
                application.input_ends[place] = max(
                    application.input_ends.get(place, 0), offset + 1
                )

    def _new(self, application: Application, topic: str, *, committed: bool) -> list[Any]:
        partitions = application.inputs.get(topic, application.partitions)
        position = application.positions.setdefault(
            (topic, committed), dict.fromkeys(range(partitions), 0)
        )
        return self.reading.records(topic, position, committed=committed)

    def observe(self, application: Application) -> None:
        """Record what has become visible on the outputs, and who wrote it."""
        if application.observed_ms is not None:
            application.blind_ms = max(
                application.blind_ms or 0, self.now_ms - application.observed_ms
            )
            application.observed_ms = self.now_ms
        for topic in application.outputs:
            self._look_at_output(application, topic)

    def _look_at_output(self, application: Application, topic: str) -> None:
        new = self._new(application, topic, committed=True)
        seen_ms = self.now_ms
        self.history.add_all(recorded(new, lambda _partition, _offset: seen_ms))
        position = application.positions.setdefault(
            (f"batches of {topic}", True), dict.fromkeys(range(application.partitions), 0)
        )
        for partition, batch in self.reading.raw.batches(topic, position):
            self.history.add(
                events.Batch(
                    topic=topic,
                    partition=partition,
                    base_offset=batch.base_offset,
                    last_offset=batch.last_offset,
                    producer_id=batch.producer_id,
                    producer_epoch=batch.producer_epoch,
                    transactional=batch.transactional,
                    control=batch.control,
                )
            )

    def look_at_store(self, application: Application) -> None:
        """Record what is kept in the store, and what was written since the last look."""
        store = application.store
        assert store
        rows = tuple(store.rows())
        writes = tuple(
            (self.now_ms - round(1000 * ago_s), stage, key) for ago_s, stage, key in store.writes()
        )
        self.history.add(
            events.Stored(at_ms=self.now_ms, application=application.name, rows=rows, writes=writes)
        )

    def weigh(self, application: Application) -> None:
        """Record what the processes of instance a have in memory, and no others."""
        size_bytes = own_bytes(application.running["a"].pids())
        self.history.add(
            events.Memory(at_ms=self.now_ms, application=application.name, size_bytes=size_bytes)
        )

    def ends(self, application: Application, look: Look | None = None) -> tuple[Position, Position]:
        """Return last stable offsets and high watermarks of the outputs.

        They are recorded if a check is to look at this moment.
        """
        stable, end = self.reading.ends(application.writes, application.partitions)
        if look:
            named = {f"{application.writes}-{p}": p for p in range(application.partitions)}
            self.history.add(
                events.Ends(
                    at_ms=self.now_ms,
                    application=application.name,
                    look=look,
                    reason=look.text,
                    last_stable={n: stable[p] for n, p in named.items()},
                    high_watermark={n: end[p] for n, p in named.items()},
                )
            )
        return stable, end

    def waited_ms(self) -> dict[str, int]:
        """How long what arrived all along waited until it was visible, by the share that waited no
        longer; nothing where the outputs were not looked for all along."""
        seen = [
            a
            for a in self.applications.values()
            if a.blind_ms is not None and a.blind_ms <= BLIND_MS
        ]
        fed = [a.name for a in seen if not a.program.merged and not a.program.beside]
        waits = sorted(
            wait_ms for name in fed for wait_ms, _ in waits_of(self.history, name) if wait_ms < inf
        )
        return {
            name: round(waits[ceil(share * len(waits)) - 1])
            for name, share in SHARES.items()
            if waits
        }

    # --- instances

    def start(  # noqa: PLR0912, PLR0913 (how it starts, all but what by name; each answer has its end)
        self,
        application: Application,
        name: str = "a",
        *,
        in_place_of: str = "",
        apart: bool = False,
        cluster: str = "",
        cold: bool = False,
        default_mode: bool = False,
        may_refuse: bool = False,
    ) -> Instance | None:
        """Start an instance and return when it holds its input; None, and a mark, where it may
        refuse to and does.

        One that takes the place of another is told that one's name, and has a disk of its own; one
        apart from it shares no storage with it either. A cold one boots in view. One of another
        cluster has that in its application id, and stands by.
        """
        clock = application.wall_clock
        if cold:
            self.rig.pool(self.manifest).rest()
            self.mark(Happening.STARTED_COLD)
        instance = self.rig.take(
            self.manifest, clock.environment if clock else {} if cold else None
        )
        application.running[name] = instance
        directory = application.directory
        durable = directory / (f"durable-{name}" if apart else "durable")
        for folder in (directory / name, durable):
            folder.mkdir(parents=True, exist_ok=True)
        request = Start(
            program=application.program.name,
            application_id="-".join(filter(None, (application.event.application_id, cluster))),
            standing_by=bool(cluster),
            instance=in_place_of or name,
            mode=None if default_mode else application.mode,
            bootstrap=self.door(application, name)
            if application.through_proxy
            else self.rig.broker.bootstrap,
            client=self.rig.broker.client,
            topics=application.event.topics,
            parameters=application.event.parameters,
            workers=application.workers,
            several=application.several,
            session_timeout_ms=self.rig.session_timeout_ms,
            transaction_timeout_ms=application.event.transaction_timeout_ms,
            state_dir=str(directory / name),
            durable_dir=str(durable),
            stores={str(application.event.parameters["store"]): application.store.address}
            if application.store
            else {},
        )
        self.happened(application, name, "started", str(instance.stderr_path.name))
        try:
            reply = instance.start(request)
        except Silence as silence:
            if self._after_a_fault():
                raise Violated.one(
                    "stuck", f"{self.manifest.name} does not start again after the fault: {silence}"
                ) from None
            raise
        match reply:
            case Ready():
                application.group, application.ready_ms = reply.consumer_group, self.now_ms
                if reply.table and not application.table:
                    application.table = reply.table
                    application.partitions = self.reading.sizes(reply.table)[reply.table]
                self.happened(application, name, "ready", ready=reply)
                for key in application.keys[:ASKED_AT_ONCE]:
                    self.ask(application, key)
            case StandingBy():
                self.happened(application, name, "standing-by")
            case Unsupported() | Failed() | Error() if may_refuse:
                said = reply.reason if isinstance(reply, Unsupported) else reply.message
                self.happened(application, name, "failed", said)
                self.mark(Happening.START_REFUSED, said=said)
                return None
            case Unsupported():
                raise NotOffered(f"{self.manifest.name} does not offer this: {reply.reason}")
            case Failed() | Error():
                self.happened(application, name, "failed", reply.message)
                if len(application.running) > 1:
                    raise Violated.one(
                        "stuck",
                        f"{self.manifest.name} does not start beside another: {reply.message}",
                    )
                if self._after_a_fault():
                    raise Violated.one(
                        "stuck",
                        f"{self.manifest.name} does not start again after the fault: "
                        f"{reply.message}",
                    )
                raise AdapterBreach(
                    f"{self.manifest.name} answered start with {reply.type}: {reply.message}"
                )
        return instance

    def door(self, application: Application, name: str) -> str:
        """The address at which an instance reaches the broker through the proxy."""
        address = self.rig.open_proxy().door(application.door(name))
        application.doors.add(name)
        return address

    def _after_a_fault(self) -> bool:
        return any(e.event in {"killed", "paused"} for e in self.history.of(events.Instance))

    def happened(
        self,
        application: Application,
        name: str,
        event: Any,
        detail: str = "",
        ready: Ready | None = None,
    ) -> None:
        """Record what befell an instance."""
        self.history.add(
            events.Instance(
                at_ms=self.now_ms,
                application=application.name,
                name=name,
                event=event,
                detail=detail,
                consumer_group=ready.consumer_group if ready else None,
                internal_topics=ready.internal_topics if ready else (),
                table=ready.table if ready else None,
            )
        )

    def mark(self, happening: Happening, text: str = "", /, **evidence: Any) -> None:
        """Record that a fault happened where it was aimed, or what else had to happen.

        Args:
            happening: What happened; it knows the family of its fault.
            text: What a person reads, where the usual words lack a name.
            evidence: What was seen of it.
        """
        self.history.add(
            events.Mark(
                at_ms=self.now_ms,
                code=happening.family,
                happening=happening,
                fault=text or happening.text,
                evidence=evidence,
            )
        )

    def pause(self, application: Application, name: str = "a") -> list[int]:
        """Stop every process of an instance."""
        pids = application.running[name].pause()
        self.happened(application, name, "paused", f"{len(pids)} processes")
        return pids

    def resume(self, application: Application, name: str = "a") -> None:
        """Let a paused instance go on."""
        application.running[name].resume()
        self.happened(application, name, "resumed")

    def kill(self, application: Application, name: str = "a") -> list[int]:
        """SIGKILL every process of an instance."""
        instance = application.running.pop(name)
        self._weigh(instance)
        pids = instance.kill()
        self.kills += 1
        self.happened(application, name, "killed", f"{len(pids)} processes")
        return pids

    def stop(self, application: Application, name: str = "a", *, twice: bool = False) -> None:
        """Close an instance gracefully; one that still runs then is told again where the scenario
        does so.
        """
        instance = application.running.pop(name)
        self._weigh(instance)
        for _ in range(1 + (twice and "reusable" in self.manifest.capabilities)):
            reply = instance.stop(STOP_MS)
            if not isinstance(reply, Stopped):
                said = f"{self.manifest.name} answered stop with {reply.type}: {reply.message}"
                raise (
                    Violated.one("stuck", said)
                    if twice or application.running
                    else AdapterBreach(said)
                )
            self.happened(application, name, "stopped")
        self.rig.pool(self.manifest).give_back(instance)

    def look_outside(self, application: Application) -> None:
        """Record what it has told outside of Kafka, if that was asked of it."""
        if application.event.parameters.get("effects"):
            text = (application.directory / "durable" / "effects").read_text(encoding="utf-8")
            lines = tuple(tuple(json.loads(line)) for line in text.splitlines())
            self.history.add(
                events.Told(at_ms=self.now_ms, application=application.name, lines=lines)
            )

    def measure(
        self, application: Application, *, times: int = 0, within_ms: int = 0, name: str = "a"
    ) -> None:
        """Record how much state an instance says that it holds; with `times`, once that is at most
        so many times the first record, or when the promised time ends."""
        if "measure" not in self.manifest.capabilities:
            raise NotOffered(
                f"{self.manifest.name} does not say how much state it holds (capability measure)"
            )
        first = next(
            (m for m in self.history.of(events.Measured) if m.application == application.name), None
        )
        until_ms = self.now_ms + within_ms
        while True:
            self.look_after(application)
            reply = application.running[name].measure()
            if not isinstance(reply, Measured):
                raise AdapterBreach(
                    f"{self.manifest.name} answered measure with {reply.type}: {reply.message}"
                )
            if not reply.size or (first and first.unit != reply.unit):
                said = f"{reply.size} {reply.unit}" + (
                    f" after {first.size} {first.unit}" if first else ""
                )
                raise AdapterBreach(
                    f"{self.manifest.name} measures {said}; expected one unit, and more than "
                    "nothing"
                )
            if (
                not first
                or not times
                or reply.size <= times * first.size
                or self.now_ms >= until_ms
            ):
                break
            time.sleep(POLL_S)
        self.history.add(
            events.Measured(
                at_ms=self.now_ms, application=application.name, size=reply.size, unit=reply.unit
            )
        )

    def mark_the_rest(self, application: Application) -> None:
        """Mark how much of the input the last stop left for later; MarkMissed where it left
        none.
        """
        offsets = [
            e.offsets
            for e in self.history.of(events.Committed)
            if e.application == application.name
        ][-1] or {}
        left = sum(
            max(0, end - offsets.get(place, 0)) for place, end in application.input_ends.items()
        )
        if not left:
            raise MarkMissed(f"{self.manifest.name} had drained its input before it was stopped")
        self.mark(Happening.INPUT_LEFT, offsets_left=left)

    # --- waiting for the design

    def committed(self, application: Application, *, stable: bool = True) -> events.Offsets | None:
        """The group's committed offsets; None while a transaction may still change them, or where
        there is no group.
        """
        if application.group is None:
            return None
        return self.reading.committed(application.group, application.commits, stable=stable)

    def is_drained(self, application: Application, *, outputs_too: bool = True) -> bool:
        """Whether the committed input is the whole visible input, and no transaction is open on
        outputs or offsets.

        Without a group, and where what is read may wait, the outputs have to say it: every key
        shows the model's last state.
        """
        if application.group is None or application.program.holds_back:
            self.observe(application)
            if not view_of(self.history, application.name).is_settled:
                return False
        if application.group is not None:
            committed = self.committed(application, stable=outputs_too)
            if committed is None or any(
                offset < application.input_ends.get(p, 0) for p, offset in committed.items()
            ):
                return False
        return not outputs_too or self._all_decided(application)

    def _all_decided(self, application: Application) -> bool:
        """Whether no transaction is open on any of its outputs."""
        ends = (self.reading.ends(topic, application.partitions) for topic in application.outputs)
        return all(stable == end for stable, end in ends)

    def look_after(self, application: Application) -> None:
        """Ask every instance for the next key of its table, if it has one; Violated where one gave
        up or vanished by itself.
        """
        for name, instance in application.running.items():
            exit_code = instance.exit_code  # first: by then its last words are heard
            if instance.failed:
                self.happened(
                    application,
                    name,
                    "failed",
                    f"{instance.failed.kind}: {instance.failed.message}",
                )
                raise Violated.one(
                    "stuck",
                    f"{instance.name} gave up: {instance.failed.kind}, {instance.failed.message}",
                )
            instance.check()
            if exit_code is not None:
                self.happened(application, name, "exited", str(exit_code))
                raise Violated.one(
                    "stuck",
                    f"{instance.name} exited with {exit_code} and no `failed`; its log is "
                    f"{instance.stderr_path.name}",
                )
        if application.keys:
            self.ask(application, application.keys[application.asked % len(application.keys)])
        if application.lag_due_ms is not None and self.now_ms >= application.lag_due_ms:
            self.ask_lag(application)

    def ask_lag(self, application: Application) -> None:
        """Ask every instance how far it is behind, and Kafka what is so."""
        application.lag_due_ms = self.now_ms + LAG_EVERY_MS
        for name, instance in application.running.items():
            asked_ms, reply = self.now_ms, instance.lag()
            if isinstance(reply, Failed):  # it gives up, which is looked for elsewhere
                continue
            if not isinstance(reply, Lagging):
                raise AdapterBreach(f"{self.manifest.name} answered lag with an error: {reply}")
            committed = self.committed(application, stable=False)
            ends = {
                t: self.reading.ends(t, partitions)[1]
                for t, partitions in application.commits.items()
            }
            if committed is not None:
                self.history.add(
                    events.Lag(
                        at_ms=asked_ms,
                        application=application.name,
                        name=name,
                        offsets=reply.offsets,
                        committed=committed,
                        high_watermark={
                            f"{t}-{p}": end for t, each in ends.items() for p, end in each.items()
                        },
                    )
                )

    def ask(self, application: Application, key: str) -> None:
        """Ask every instance for a key of its table; record what each says, and how far readers of
        committed data see then.
        """
        if "query" not in self.manifest.capabilities:
            return
        application.asked += 1
        for name, instance in application.running.items():
            reply = instance.query(application.program.writes, key)
            if isinstance(reply, Failed):  # it gives up, which is looked for elsewhere
                continue
            if not isinstance(reply, Value | NotReady):
                raise AdapterBreach(f"{self.manifest.name} answered query with an error: {reply}")
            stable, _ = self.ends(application)
            self.history.add(
                events.Answer(
                    at_ms=self.now_ms,
                    application=application.name,
                    name=name,
                    key=key.encode(),
                    ready=isinstance(reply, Value),
                    value=reply.value if isinstance(reply, Value) else None,
                    stable={f"{application.writes}-{p}": offset for p, offset in stable.items()},
                )
            )

    def ask_for_all(self, application: Application, within_ms: int) -> None:
        """Ask for every key of the table, until all answers are its last rows or the promised time
        ends.
        """
        until_ms = self.now_ms + within_ms
        while "query" in self.manifest.capabilities:
            self.observe(application)
            for key in application.keys:
                self.ask(application, key)
            if not CHECKS["answered"](self.history, application.name) or self.now_ms > until_ms:
                break

    def look_at_kept(self, application: Application) -> None:
        """Record what the design keeps on the broker: every topic of its own, and how much of it
        stands in its table as well.
        """
        self.observe(application)
        mine = {a.event.topics[role] for a in self.applications.values() for role in a.event.topics}
        outputs = {
            (r.key, r.value)
            for r in self.history.of(events.Record)
            if r.topic == application.writes
        }
        for topic, partitions in self.reading.sizes(application.event.application_id).items():
            if topic in mine and (
                topic != application.event.topics[application.program.writes]
                or application.table is None
            ):
                continue
            records = self.reading.records(
                topic, dict.fromkeys(range(partitions), 0), committed=True
            )
            is_table = topic == application.writes
            self.history.add(
                events.Kept(
                    at_ms=self.now_ms,
                    application=application.name,
                    topic=topic,
                    partitions=partitions,
                    records=len(records),
                    size_bytes=sum(len(r.key() or b"") + len(r.value() or b"") for r in records),
                    repeated=0
                    if is_table
                    else sum((r.key(), r.value()) in outputs for r in records),
                )
            )

    def expect_failure(self, application: Application, name: str = "a") -> None:
        """Wait for the loud stop of an instance that was given what it cannot read."""
        instance = application.running[name]
        if not self.wait(self.rig.progress_s, lambda: instance.is_over):
            raise Violated.one(
                "stuck",
                f"{self.manifest.name} neither went on nor said why not, on a record that it "
                "cannot read",
            )
        if instance.failed is None or instance.failed.kind != "poison":
            self.look_after(application)
        self.gave_up(application, name)
        self.settle(application)

    def gave_up(self, application: Application, name: str) -> None:
        """Take away an instance that has said why it goes on no more, and record that."""
        failed = application.running[name].failed
        assert failed
        self.happened(application, name, "failed", f"{failed.kind}: {failed.message}")
        self.let_go(application, name)

    def let_go(self, application: Application, name: str) -> None:
        """End an instance that works no more, unless it takes another start."""
        self.rig.pool(self.manifest).give_back(application.running.pop(name))

    def demand_group(self, application: Application, what: str) -> None:
        """NotOffered where that can be seen by its group alone, and it names none."""
        if application.group is None:
            raise NotOffered(
                f"{self.manifest.name} names no consumer group, so nobody can see {what}"
            )

    def drain(self, application: Application, *, outputs_too: bool = True) -> None:
        """Wait until the input is drained; an input that moves no further is stuck."""
        seen: object = None
        moved = looked = time.monotonic()
        while not self.is_drained(application, outputs_too=outputs_too):
            self.look_after(application)
            if application.observed_ms is not None:
                self.observe(application)
            if (now := time.monotonic()) > looked + PROGRESS_LOOK_S:
                looked = now
                progress = self.committed(application), self.ends(application)
                if progress != seen:
                    seen, moved = progress, now
                elif now - moved > self.rig.progress_s * self.rig.time_scale:
                    said = (
                        f"the group's offsets rest at {progress[0]}, the visible input ends at "
                        f"{application.input_ends}"
                    )
                    raise Violated.one(
                        "stuck",
                        f"{self.manifest.name} processes no more: for {self.rig.progress_s:g} s "
                        f"{said}",
                    )
            time.sleep(POLL_S)
        if application.group is None:
            self.wait(SETTLE_S, lambda: False)  # nothing more may come
        self.observe(application)
        application.observed_ms = None

    def drain_again(self, application: Application) -> None:
        """The same, with instance a started once more if it stops loudly, as whoever looks after
        processes does.
        """
        instance = application.running["a"]
        self.wait(
            self.rig.progress_s, lambda: instance.failed is not None or self.is_drained(application)
        )
        if instance.failed:
            self.gave_up(application, "a")
            self.start(application)
        self.drain(application)

    def await_cleaner(self, application: Application) -> None:
        """See rows come until the log cleaner has left less than half of those that were written;
        mark how many are left.
        """
        left, written = list[Any](), 0

        def cleaned() -> bool:
            nonlocal left, written
            self.watch(application, self.now_ms + CLEANED_MS)
            start = dict.fromkeys(range(application.partitions), 0)
            left, written = (
                self.reading.records(application.writes, start, committed=True),
                self.outputs_seen(application),
            )
            return 2 * len(left) < written

        if not self.wait(self.rig.progress_s, cleaned):
            raise MarkMissed(f"{len(left)} of {written} rows of {application.writes} are left")
        size_bytes = sum(len(row.key() or b"") + len(row.value() or b"") for row in left)
        self.mark(
            Happening.TABLE_COMPACTED,
            rows_written=written,
            rows_left=len(left),
            bytes_left=size_bytes,
        )

    def watch_release(self, application: Application) -> "Future[int]":
        """Measure, from now and beside everything else, how long a reader waits to pass what lies
        on the outputs now.
        """
        broker, partitions, began = self.rig.broker, application.partitions, time.monotonic()
        _, wanted = self.ends(application)
        released: Future[int] = Future()

        def watch() -> None:
            deadline = began + self.decided_s(application) * self.rig.time_scale
            raw = RawClient(broker.bootstrap, broker.client)
            while time.monotonic() < deadline:
                stable, _ = raw.ends(application.writes, dict.fromkeys(range(partitions), 0))
                if all(stable[p] >= end for p, end in wanted.items()):
                    break
                time.sleep(POLL_S)
            raw.close()
            released.set_result(round((time.monotonic() - began) * 1000))

        threading.Thread(target=watch, name="release", daemon=True).start()
        return released

    def settle(
        self,
        application: Application,
        *,
        waits: bool = True,
        since_ms: int | None = None,
        waited_ms: int | None = None,
    ) -> None:
        """Wait until every transaction is decided; record the committed input beside the visible
        outputs.

        Without `waits`, one that the dead left open stays so: readers stop before it. How long they
        were held up is counted from now, from `since_ms`, or was measured already (`waited_ms`).
        """
        began = self.now_ms if since_ms is None else since_ms
        committed: events.Offsets | None = None
        stable_ms: int | None = None

        def decided() -> bool:
            nonlocal committed, stable_ms
            if not waits and self._is_left_open(application):
                committed = self.committed(application, stable=False)
                self.observe(application)
                # All the while: what was read in between belongs together.
                return self._is_left_open(application)
            if not self._all_decided(application):
                return False
            stable_ms, committed = stable_ms or self.now_ms, self.committed(application)
            return committed is not None or application.group is None

        if not self.wait(self.decided_s(application), decided):
            raise Violated.one(
                "stuck",
                f"a transaction of {self.manifest.name} is still open long after its timeout",
            )
        self.observe(application)
        self.history.add(
            events.Committed(
                at_ms=self.now_ms,
                application=application.name,
                offsets=committed,
                stable_ms=(stable_ms or self.now_ms) - began if waited_ms is None else waited_ms,
                down=not application.running,
            )
        )
        if application.store:
            self.look_at_store(application)

    def catch_up(self, application: Application, within_ms: int) -> None:
        """Wait until the committed offsets are the ends of the input's log; record both as they are
        then, or at the end.
        """
        self.demand_group(application, "how far it is")
        began, ends = self.now_ms, dict[str, int]()
        committed: events.Offsets | None = None

        def reached() -> bool:
            nonlocal committed, ends
            self.look_after(application)
            ends = {
                f"{topic}-{partition}": end
                for topic, partitions in application.commits.items()
                for partition, end in self.reading.ends(topic, partitions)[1].items()
            }
            committed = self.committed(application)
            return committed == ends

        self.wait(within_ms / 1000, reached)
        self.history.add(
            events.Committed(
                at_ms=self.now_ms,
                application=application.name,
                offsets=committed,
                stable_ms=self.now_ms - began,
                down=False,
                high_watermark=ends,
            )
        )

    def _is_left_open(self, application: Application) -> bool:
        """Whether all that readers do not see yet is of transactions without an outcome."""
        above = []
        for topic in application.outputs:
            stable, _ = self.reading.ends(topic, application.partitions)
            above += [batch for _, batch in self.reading.raw.batches(topic, stable)]
        return is_left_open(above, self.reading.raw.undecided())

    def paused_input(self, application: Application, promised_ms: int) -> None:
        """The input rests: look as soon as it is drained and all of it is visible, or is in the
        store where that is what is promised, and at the latest when the promise ends."""
        since_ms = max(application.fed_ms, application.ready_ms)
        cores = Cores()
        canary_ms = self.reading.canary_ms()
        while self.now_ms < since_ms + promised_ms:
            self.look_after(application)
            if self.is_drained(application):
                self.observe(application)
                view = view_of(self.history, application.name)
                if view.is_settled and (
                    application.store is None or not unsettled(view, application.store.rows())
                ):
                    break
            time.sleep(POLL_S)
        self.observe(application)
        if application.store:
            self.look_at_store(application)
        self._look_ends(application, since_ms, self.now_ms, promised_ms, canary_ms, cores)

    def _look_ends(  # noqa: PLR0913, PLR0917 (what there is to say of it)
        self,
        application: Application,
        since_ms: int,
        looked_ms: int,
        tolerance_ms: int,
        canary_ms: int,
        cores: Cores,
    ) -> None:
        others = round(max(cores.others(), self.cores.others()), 2)
        self.history.add(
            events.Paused(
                application=application.name,
                since_ms=since_ms,
                looked_ms=looked_ms,
                tolerance_ms=tolerance_ms,
                canary_ms=canary_ms,
                others=others,
                harness=round(self.cores.harness(), 2),
            )
        )
        self.cores = Cores()

    def first_output(
        self, application: Application, within_ms: int, known: int | None = None
    ) -> None:
        """Look for an output that is new since the last cold start or switch, beyond those that are
        known; mark how long it took, and record when it was looked for."""
        since_ms = next(
            m.at_ms
            for m in reversed(list(self.history.of(events.Mark)))
            if m.happening in {Happening.STARTED_COLD, Happening.CLUSTERS_SWITCHED}
        )
        known = self.outputs_seen(application) if known is None else known

        def is_new() -> bool:
            self.look_after(application)
            self.observe(application)
            return self.outputs_seen(application) > known

        self.recovers(application, since_ms, within_ms, is_new)

    def recovers(
        self, application: Application, since_ms: int, within_ms: int, reached: Callable[[], bool]
    ) -> None:
        """Look until it is back, or the time is up; mark how long it took, and record when it was
        looked for.
        """
        cores, canary_ms = Cores(), self.reading.canary_ms()
        while not (is_back := reached()) and self.now_ms < since_ms + within_ms:
            time.sleep(POLL_S)
        looked_ms = self.now_ms
        if is_back:
            self.mark(Happening.RECOVERED, after_ms=looked_ms - since_ms)
        self._look_ends(application, since_ms, looked_ms, within_ms, canary_ms, cores)

    def outputs_seen(self, application: Application) -> int:
        """How many visible outputs are in the history."""
        return sum(
            r.topic == application.writes and r.visible for r in self.history.of(events.Record)
        )

    # --- judging

    def claim(self, check: str, application: Application, sentence: str, **arguments: Any) -> None:
        """Judge the history as it stands; Violated where the check finds an anomaly."""
        if check in {"side-effects", "no-topics"}:
            self._names()
        if check == "footprint":
            self.look_at_kept(application)
        self.history.add(
            events.Claim(
                check=check, application=application.name, sentence=sentence, arguments=arguments
            )
        )
        try:
            anomalies = worst_first(CHECKS[check](self.history, application.name, **arguments))
        except (
            NotOffered
        ) as reason:  # this rule alone cannot be judged; what follows may still be violated
            self.not_offered = self.not_offered or reason
            return
        if anomalies:
            raise Violated(anomalies)

    def _shut(self, application: Application, name: str) -> None:
        """Close an instance's door, and record what went through it: of each connection the APIs,
        their versions and how many.
        """
        assert self.rig.proxy
        exchanges = self.rig.proxy.shut(application.door(name))
        for connection in dict.fromkeys(exchange.connection for exchange in exchanges):
            own = [exchange for exchange in exchanges if exchange.connection == connection]
            changes = (e for e in own if e.api in EFFECTS)
            self.history.add(
                events.Connection(
                    at_ms=self.now_ms,
                    application=application.name,
                    name=name,
                    client=own[-1].client_id or "",
                    asked=Counter(f"{exchange.api} v{exchange.version}" for exchange in own),
                    changed=[
                        (round((e.asked_s - self.began) * 1000), e.api, e.fault) for e in changes
                    ],
                )
            )

    def _weigh(self, instance: Instance) -> None:
        """Remember what its processes had in memory at most, before they may be gone."""
        self.peak_bytes = max(self.peak_bytes, peak_bytes(instance.pids()))

    def _count_topics(self) -> None:
        """Remember the topics of this attempt, and what they hold; a cluster may not let us see how
        much.
        """
        with contextlib.suppress(KafkaException, MachineProblem, OSError):
            self.topics = self.reading.sizes(self.application_id)
            self.topic_bytes = self.reading.raw.log_bytes(self.topics) if self.topics else 0

    def close(self, *, gently: bool = True) -> None:
        """End what still runs, gently so that the next scenario can have it if it is reusable, and
        delete the topics.
        """
        pool = self.rig.pool(self.manifest)
        for application in self.applications.values():
            for instance in application.running.values():
                self._weigh(instance)
                if not gently or "reusable" not in self.manifest.capabilities:
                    instance.kill()
                elif not instance.is_over:
                    instance.resume()
                    # The scenario is over: how this one ends is no part of it.
                    with contextlib.suppress(AdapterBreach):
                        instance.stop(STOP_MS)
                pool.give_back(instance)
            application.running.clear()
            for name in sorted(application.doors):
                self._shut(application, name)
            if application.store:
                application.store.close()
            unmount(application.directory)
            shutil.rmtree(application.directory, ignore_errors=True)
            shutil.rmtree(application.kept, ignore_errors=True)
        self._count_topics()
        made = {
            topic
            for application in self.applications.values()
            for topic in application.event.topics.values()
        }
        self.reading.delete(
            made | {topic for e in self.history.of(events.Instance) for topic in e.internal_topics}
        )
        if any(application.doors for application in self.applications.values()):
            self.rig.open_proxy()  # which says what it could not read
