"""Instances of the design: started, stopped, killed, paused, and let go of."""

import contextlib
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from upheld.errors import MachineProblem
from upheld.history import events
from upheld.history.marks import Happening
from upheld.injectors.proxy.offers import negotiated
from upheld.injectors.proxy.rules import EFFECTS
from upheld.injectors.proxy.timeouts import Timeout, Timeouts
from upheld.kafka.groups import Session
from upheld.protocol.manifest import Manifest
from upheld.protocol.messages import (
    Error,
    Failed,
    Mode,
    Ready,
    StandingBy,
    Start,
    Stopped,
    Unsupported,
)
from upheld.supervisor.costs import peak_bytes
from upheld.supervisor.instance import Instance, Overdue, Silence
from upheld.trial.application import Application
from upheld.trial.deployment import PROMPT_MS, TRANSACTION_TIMEOUT_MS
from upheld.trial.probes import Probes
from upheld.trial.recorder import Recorder
from upheld.trial.rig import Rig
from upheld.verdicts import AdapterBreach, Undeclared, Violated

STOP_MS = 10_000
TABLE_S = 5.0  # a topic that a design has just made is known to every node by then
HEARTBEATS = 4  # in a session
SET_S = 5.0  # a broker has a new setting by then
ASKED_AT_ONCE = 16  # keys of a table, when an instance has just said that it is ready


@dataclass(frozen=True)
class Launch:
    """How an instance starts, if not as the first of its application does."""

    in_place_of: str = ""  # the instance that it replaces, whose name it is given
    apart: bool = False  # it shares no storage with the others
    cluster: str = ""  # a part of its application id
    stands_by: bool = False  # until it is told to take over from another cluster
    cold: bool = False  # it boots in view, after everything else has booted
    default_mode: bool = False  # its request names no mode
    mode: Mode | None = None  # another one than its application was declared with
    commit_interval_ms: int | None = None  # the same of its commit interval
    may_refuse: bool = False  # a refusal is recorded, and no failure
    release: events.Release | None = None  # of two; None if there is one alone

    @property
    def parameters(self) -> dict[str, int | str]:
        """The parameters of the program that are other ones from this start on."""
        if self.commit_interval_ms is None:
            return {}
        return {"commit_interval_ms": self.commit_interval_ms}

    @property
    def changes(self) -> dict[str, str]:
        """Each setting that is another one from this start on, and its value in words."""
        found: dict[str, str] = {"the mode": self.mode} if self.mode else {}
        if self.commit_interval_ms is not None:
            found["the commit interval"] = f"{self.commit_interval_ms} ms"
        return found


AS_USUAL: Final = Launch()


@dataclass
class Instances:
    """The instances of every application of one attempt."""

    recorder: Recorder
    rig: Rig
    manifest: Manifest
    probes: Probes
    kills: int = 0
    peak_bytes: int = 0  # the most that the processes of an instance had in memory
    by_log: dict[str, Instance] = field(default_factory=dict)  # all that were started

    def __post_init__(self) -> None:
        """Let each mark say how far the logs were.

        The recorder has the logs and not these instances, which have the recorder: in a cycle all
        of them would wait for a collection of garbage.
        """
        by_log = self.by_log
        self.recorder.log_sizes = lambda: {log: each.log.size for log, each in by_log.items()}

    # --- how they begin

    def start(
        self, application: Application, name: str = "a", launch: Launch = AS_USUAL
    ) -> Instance | None:
        """Start an instance, and return it when it holds its input or stands by.

        A refusal that the launch allows is marked, and nothing is returned.

        Raises:
            Undeclared: The design does not support what it was asked for.
            Violated: It does not start beside another instance, or again after a fault.
            AdapterBreach: It failed in any other case.
        """
        instance = self._take(application, launch)
        application.running[name] = instance
        if launch.release:
            self.recorder.releases[application.name, name] = launch.release
        self._mark_changes(launch)
        request = self._request(application, name, launch)
        log = self.rig.log_name(instance.stderr_path)
        self.by_log[log] = instance
        self.recorder.happened(application, name, "started", log)
        asked_s = time.monotonic()
        reply = self._reply(instance, request)
        self._record_notices(application, name, instance)
        match reply:
            case Ready():
                start_s = instance.boot_s + time.monotonic() - asked_s
                self.rig.measured(instance.manifest, start_s)
                self._is_ready(application, name, reply)
            case StandingBy():
                self.recorder.happened(application, name, "standing-by")
            case Unsupported() | Failed() | Error() if launch.may_refuse:
                self._did_not_start(application, name, reply)
                self.recorder.mark(Happening.START_REFUSED, said=_words(reply))
                return None
            case Unsupported():
                raise Undeclared(f"{self.manifest.name} does not offer this: {reply.reason}")
            case Failed() | Error():
                self._did_not_start(application, name, reply)
                raise self._failure(application, reply)
        return instance

    def _take(self, application: Application, launch: Launch) -> Instance:
        """Take a warm instance, or boot one."""
        clock = application.wall_clock
        manifest = self.manifest
        if launch.release == "earlier":
            assert manifest.previous
            manifest = manifest.previous
        if launch.cold:
            self.rig.pool(manifest).rest()
            self.recorder.mark(Happening.STARTED_COLD)
        if clock:
            return self.rig.take(manifest, clock.environment)
        return self.rig.take(manifest, {} if launch.cold else None)

    def _request(self, application: Application, name: str, launch: Launch) -> Start:
        """Make the disks of an instance, and return the request that starts it."""
        event = application.event
        state = application.disks / name
        durable = application.disks / (f"durable-{name}" if launch.apart else "durable")
        for folder in (state, durable):
            folder.make()
        bootstrap = self.rig.broker.bootstrap
        asks = self.manifest.asks_for_a_door and not self.rig.is_secured
        if application.through_proxy or asks:
            bootstrap = self._open_door(application, name)
        stores: dict[str, str] = {}
        if application.store:
            stores[str(event.parameters["store"])] = application.store.address
        return Start(
            program=application.program.name,
            application_id="-".join(filter(None, (event.application_id, launch.cluster))),
            standing_by=launch.stands_by,
            instance=launch.in_place_of or name,
            mode=None if launch.default_mode else launch.mode or application.mode,
            bootstrap=bootstrap,
            client=self.rig.client_of(self.manifest),
            topics=event.topics,
            parameters=event.parameters | launch.parameters,
            workers=application.workers,
            several=application.several,
            group_protocol=application.group_protocol,
            session_timeout_ms=application.session_timeout_ms or self.rig.session_timeout_ms,
            transaction_timeout_ms=event.transaction_timeout_ms,
            state_dir=str(state.path),
            durable_dir=str(durable.path),
            stores=stores,
        )

    def _mark_changes(self, launch: Launch) -> None:
        """Mark each setting that is another one from this start on."""
        for setting, value in launch.changes.items():
            said = Happening.PLANNED_CHANGE.text.format(setting=setting, value=value)
            self.recorder.mark(Happening.PLANNED_CHANGE, said, setting=setting, value=value)

    def _open_door(self, application: Application, name: str) -> str:
        """Return the address at which an instance reaches the broker through the proxy."""
        proxy = self.rig.open_proxy()
        door = application.door(name)
        address = proxy.door(door, self.rig.security_of(self.manifest))
        application.doors.add(name)
        if self.manifest.untold and door not in proxy.timeouts:
            proxy.timeouts[door] = Timeouts(self._longest(application))
        return address

    def _longest(self, application: Application) -> dict[Timeout, int]:
        """Return the longest timeouts that an application which is not told them may ask for.

        A transaction may last for as long as its outputs may take to be visible.
        """
        if self.manifest.timeouts == "deployed":
            return {}
        assert self.manifest.application
        event = application.event
        visible_ms = int(event.parameters["commit_interval_ms"]) + PROMPT_MS
        longest = {
            Timeout.SESSION: self.manifest.application.shortest_session_ms,
            Timeout.TRANSACTION: max(event.transaction_timeout_ms, visible_ms),
        }
        return {each: ms for each, ms in longest.items() if each in self.manifest.untold}

    def _note_timeouts(self, application: Application, name: str) -> None:
        """Note the timeouts that an instance asked for, and mark each that was shortened."""
        door = application.door(name)
        seen = self.rig.proxy.timeouts.get(door) if self.rig.proxy else None
        for timeout, asked in list(seen.asked.items()) if seen else ():
            assert seen
            given = seen.given[timeout]
            if application.timeouts.get(timeout) == given:
                continue
            application.timeouts[timeout] = given
            if given < asked:
                text = Happening.TIMEOUT_SHORTENED.text
                said = text.format(timeout=timeout, asked=asked, given=given)
                self.recorder.mark(
                    Happening.TIMEOUT_SHORTENED, said, asked_ms=asked, given_ms=given
                )
        slower_ms = sum(
            max(0, application.timeouts.get(timeout, 0) - usual_ms)
            for timeout, usual_ms in (
                (Timeout.SESSION, self.rig.session_timeout_ms),
                (Timeout.TRANSACTION, application.event.transaction_timeout_ms),
            )
        )
        if slower_ms:
            self.rig.slower_ms[self.manifest.name] = slower_ms

    def _reply(
        self, instance: Instance, request: Start
    ) -> Ready | StandingBy | Unsupported | Error | Failed:
        """Start an instance; after a fault the design answers for its silence."""
        try:
            return instance.start(request)
        except Silence as silence:
            if self._is_after_a_fault():
                raise Violated.one(
                    "stuck", f"{self.manifest.name} does not start again after the fault: {silence}"
                ) from None
            raise

    def _is_ready(self, application: Application, name: str, ready: Ready) -> None:
        """Record that an instance holds its input, and ask it for the first keys of its table.

        Raises:
            Undeclared: The scenario needs small segments, which only the harness's own table has.
        """
        application.group = ready.consumer_group
        application.ready_ms = self.recorder.now_ms
        if ready.table and not application.table:
            application.partitions = self._partitions(ready.table)
            application.table = ready.table
        self.recorder.happened(application, name, "ready", ready=ready)
        if (
            application.deployment.rolls
            and application.writes not in application.event.topics.values()
        ):
            raise Undeclared(
                f"the table of {self.manifest.name} is a topic of its own, {application.writes}, "
                "and its segments are the design's to set"
            )
        if self.manifest.untold:
            self._note_timeouts(application, name)
            self._demand_long_enough(application)
        self._fit_session(application)
        for key in application.keys[:ASKED_AT_ONCE]:
            self.probes.query(application, key)

    def _demand_long_enough(self, application: Application) -> None:
        """Demand that a transaction may last as long as the row sets it.

        Raises:
            Undeclared: The application asks for a shorter time, which the proxy does not lengthen.
        """
        own_ms = application.timeouts.get(Timeout.TRANSACTION)
        wanted_ms = application.event.transaction_timeout_ms
        if (
            own_ms is None
            or self.manifest.progress != "group"
            or self.manifest.timeouts != "shortened"
        ):
            return
        if TRANSACTION_TIMEOUT_MS < wanted_ms > own_ms:
            raise Undeclared(
                f"{self.manifest.name} is not told its transaction timeout, which is {own_ms} ms, "
                f"and the row sets {wanted_ms} ms"
            )

    def _did_not_start(
        self, application: Application, name: str, reply: Unsupported | Failed | Error
    ) -> None:
        """Record that an instance was asked to start and refused."""
        if isinstance(reply, Failed):
            self.recorder.gave_up(application, name, reply)
        else:
            self.recorder.happened(application, name, "failed", _words(reply))

    def _record_notices(self, application: Application, name: str, instance: Instance) -> None:
        """Record what an instance has said unasked since the last look."""
        while not instance.notices.empty():
            self.recorder.noticed(application, name, instance.notices.get())

    def _fit_session(self, application: Application) -> None:
        """Give the group the session that its members were to have, if it is the group's own.

        The members learn it by their next heartbeats, which are waited for.

        Raises:
            AdapterBreach: The group has not the protocol that it was to have.
            MachineProblem: The broker does not set such a session.
        """
        if application.group is None:
            return
        group = application.group
        groups = self.rig.reading.groups
        found: Session | None = None

        def is_known() -> bool:
            nonlocal found
            found = groups.session(group)
            return found is not None

        self.recorder.wait(SET_S, is_known)
        wanted = application.group_protocol
        if wanted and (found is None or found.protocol != wanted):
            raise AdapterBreach(
                f"{self.manifest.name} was to join its group by the protocol {wanted}. By the "
                f"broker's word the group {group} has {found.protocol if found else 'none'}"
            )
        session_ms = application.session_timeout_ms or self.rig.session_timeout_ms
        if found is None or found.protocol == "classic" or found.session_ms == session_ms:
            return
        fit = found._replace(session_ms=session_ms, heartbeat_ms=session_ms // HEARTBEATS)
        groups.set_session(group, fit)
        if not self.recorder.wait(SET_S, lambda: groups.session(group) == fit):
            raise MachineProblem(
                f"the broker was told a session of {session_ms} ms for the group {group}, and "
                "still has another one"
            )
        self.recorder.wait(found.heartbeat_ms / 1000, lambda: False)
        self.recorder.mark(Happening.SESSION_SET, protocol=fit.protocol, session_ms=session_ms)

    def _partitions(self, table: str) -> int:
        """Return how many partitions the topic has that a design calls its table.

        Raises:
            AdapterBreach: The broker has no such topic.
        """
        found = self.rig.reading.partitions(table, TABLE_S * self.rig.time_scale)
        if not found:
            raise AdapterBreach(
                f"{self.manifest.name} said table {table} in ready, and the broker has no such "
                "topic. Expected a topic that the design has made by then"
            )
        return found

    def _failure(self, application: Application, reply: Failed | Error) -> Violated | AdapterBreach:
        """Return the verdict on a start that failed."""
        design = self.manifest.name
        if len(application.running) > 1:
            return Violated.one("stuck", f"{design} does not start beside another: {reply.message}")
        if self._is_after_a_fault():
            return Violated.one(
                "stuck", f"{design} does not start again after the fault: {reply.message}"
            )
        return AdapterBreach(f"{design} answered start with {reply.type}: {reply.message}")

    def _is_after_a_fault(self) -> bool:
        """Return whether the harness has struck the design, or anything around it."""
        happened = self.recorder.history.of(events.Instance)
        marks = self.recorder.history.of(events.Mark)
        is_struck = any(mark.happening and mark.happening.family for mark in marks)
        return is_struck or any(each.event in {"killed", "paused"} for each in happened)

    # --- while they run

    def demand_alive(self, application: Application) -> None:
        """Raise Violated if an instance gave up or vanished by itself.

        An instance that its supervisor starts once more may have stopped loudly. It is taken away.
        """
        stopped = list[str]()
        for name, instance in application.running.items():
            exit_code = instance.exit_code  # first: by then its last words are heard
            self._record_notices(application, name, instance)
            if instance.failed and application.may_stop(name):
                stopped.append(name)
                continue
            if instance.failed:
                kind = instance.failed.kind
                message = instance.failed.message
                self.recorder.gave_up(application, name, instance.failed)
                raise Violated.one("stuck", f"{instance.name} gave up: {kind}, {message}")
            instance.check()
            if exit_code is not None:
                self.recorder.happened(application, name, "exited", str(exit_code))
                raise Violated.one(
                    "stuck",
                    f"{instance.name} exited with {exit_code} and no `failed`; its log is "
                    f"{instance.stderr_path.name}",
                )
        for name in stopped:
            self.gave_up(application, name)
            application.stopped.append(name)

    def pause(self, application: Application, name: str = "a") -> list[int]:
        """Stop every process of an instance, and return their ids."""
        pids = application.running[name].pause()
        self.recorder.happened(application, name, "paused", f"{len(pids)} processes")
        return pids

    def resume(self, application: Application, name: str = "a") -> None:
        """Let a paused instance go on."""
        application.running[name].resume()
        self.recorder.happened(application, name, "resumed")

    # --- how they end

    def kill(self, application: Application, name: str = "a") -> list[int]:
        """SIGKILL every process of an instance, and return their ids."""
        instance = application.running.pop(name)
        self._weigh(instance)
        pids = instance.kill()
        self._record_notices(application, name, instance)
        self.kills += 1
        self.recorder.happened(application, name, "killed", f"{len(pids)} processes")
        return pids

    def stop(self, application: Application, name: str = "a", *, twice: bool = False) -> None:
        """Close an instance gracefully.

        Args:
            application: The application that it runs.
            name: The name of the instance.
            twice: Whether a reusable instance, which still runs after its stop, is stopped again.

        Raises:
            Violated: It is not closed in time, or fails beside others.
            AdapterBreach: It answers at once that it does not close.
        """
        instance = application.running.pop(name)
        self._weigh(instance)
        for _ in range(1 + (twice and "reusable" in instance.manifest.capabilities)):
            began_ms = self.recorder.now_ms
            try:
                reply = instance.stop(STOP_MS)
            except Overdue as overdue:
                raise self._not_closed(str(overdue)) from None
            self._record_notices(application, name, instance)
            if not isinstance(reply, Stopped):
                text = f"{self.manifest.name} answered stop with {reply.type}: {reply.message}"
                if isinstance(reply, Error) and self.recorder.now_ms - began_ms >= STOP_MS:
                    raise self._not_closed(text)
                if twice or application.running:
                    raise Violated.one("stuck", text)
                raise AdapterBreach(text)
            self.recorder.happened(application, name, "stopped")
        self.rig.pool(instance.manifest).give_back(instance)

    def _not_closed(self, said: str) -> Violated:
        """Return the verdict on an instance that does not finish its work by a stop's deadline."""
        design = self.manifest.name
        return Violated.one(
            "late", f"{design} is not closed {STOP_MS / 1000:g} s after stop: {said}"
        )

    def gave_up(self, application: Application, name: str) -> None:
        """Record that an instance has failed, and take it away."""
        instance = application.running[name]
        assert instance.failed
        self._record_notices(application, name, instance)
        self.recorder.gave_up(application, name, instance.failed)
        self.let_go(application, name)

    def let_go(self, application: Application, name: str) -> None:
        """End an instance that works no more, unless it takes another start."""
        instance = application.running.pop(name)
        self.rig.pool(instance.manifest).give_back(instance)

    def end_all(self, application: Application, *, gently: bool) -> None:
        """End the instances that still run, and record the connections that the proxy saw.

        Args:
            application: The application whose instances end.
            gently: A reusable instance is stopped, so that the next scenario can have it.
        """
        for instance in application.running.values():
            self._weigh(instance)
            if not gently or "reusable" not in instance.manifest.capabilities:
                instance.kill()
            elif not instance.is_over:
                instance.resume()
                # The scenario is over: how this instance ends is no part of it.
                with contextlib.suppress(AdapterBreach):
                    instance.stop(STOP_MS)
            self.rig.pool(instance.manifest).give_back(instance)
        application.running.clear()
        for name in sorted(application.doors):
            self._shut_door(application, name)

    def _shut_door(self, application: Application, name: str) -> None:
        """Record each connection that an instance made through the proxy, with its requests.

        The versions of all of them together come first.
        """
        assert self.rig.proxy
        if self.manifest.untold:
            self._note_timeouts(application, name)
        exchanges = self.rig.proxy.shut(application.door(name))
        if exchanges:
            versions = negotiated(
                ((exchange.api, exchange.version) for exchange in exchanges), self.rig.proxy.offers
            )
            self.recorder.history.add(
                events.Negotiated(
                    at_ms=self.recorder.now_ms,
                    application=application.name,
                    name=name,
                    **versions._asdict(),
                )
            )
        for connection in dict.fromkeys(exchange.connection for exchange in exchanges):
            own = [exchange for exchange in exchanges if exchange.connection == connection]
            changes = (exchange for exchange in own if exchange.api in EFFECTS)
            self.recorder.history.add(
                events.Connection(
                    at_ms=self.recorder.now_ms,
                    application=application.name,
                    name=name,
                    client=own[-1].client_id or "",
                    asked=Counter(f"{exchange.api} v{exchange.version}" for exchange in own),
                    changed=[
                        (self.recorder.ms_of(exchange.asked_s), exchange.api, exchange.fault)
                        for exchange in changes
                    ],
                )
            )

    def _weigh(self, instance: Instance) -> None:
        """Remember the most that its processes had in memory, before they may be gone."""
        self.peak_bytes = max(self.peak_bytes, peak_bytes(instance.pids()))


def _words(reply: Unsupported | Failed | Error) -> str:
    """Return why an instance did not start, in its own words."""
    return reply.reason if isinstance(reply, Unsupported) else reply.message
