"""One visit: an application is started on samples of its own, watched and stopped.

Its processes stay below a guard of the run, so nothing of it is left whatever ends the visit.
"""

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Final, TypeVar

from upheld.brokers import Broker
from upheld.commands import PYTHON, filled
from upheld.doctor import seen as s
from upheld.doctor.fence import Address, outside, resolved
from upheld.doctor.outputs import Texts, judged, told_apart
from upheld.doctor.queries import answer, last_of
from upheld.doctor.wire import COMMITTED_ONLY, LATEST, Wire
from upheld.errors import MachineProblem
from upheld.generators.inputs import made_for
from upheld.generators.ledger import Send
from upheld.history.events import Record
from upheld.injectors.proxy.proxy import Proxy
from upheld.injectors.proxy.rules import Rule
from upheld.injectors.proxy.security import Security, secured
from upheld.kafka.feed import Feed
from upheld.kafka.reader import recorded
from upheld.kafka.reading import Reading
from upheld.programs.modelled import contract_of
from upheld.protocol.manifest import Manifest
from upheld.protocol.subject import NAMESPACE
from upheld.reading import read_bytes
from upheld.supervisor import deployed
from upheld.supervisor.environment import environment_of, of_a_bridge
from upheld.supervisor.guarded import Child, Guarded
from upheld.supervisor.log import Log
from upheld.supervisor.namespace import Namespace, Outside, advertised, fenced
from upheld.supervisor.reaper import RunScope
from upheld.supervisor.session import INSTANCE_TAG, Session
from upheld.threads import Heard, raise_failure
from upheld.trial.stillness import Stillness

DOOR: Final = "application"
PARTITIONS: Final = 2
FIRST: Final = 40  # records that wait when it starts
LATER: Final = 20  # records that arrive when it has done the first
ABORTED: Final = 2  # transactions among the first
SESSION_MS: Final = 6_000
TRANSACTION_MS: Final = 10_000
COMMIT_MS: Final = 100
LOOK_S: Final = 0.05
SETTLE_S: Final = 0.3
ANSWER_S: Final = 2.0  # until it answers with an output that is visible
GONE_S: Final = 5.0  # after a kill
LEAVE_S: Final = 1.0  # until the broker has seen that a member leaves its group
LOG_LINES: Final = 8

Say = Callable[[str], None]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Patience:
    """How long the doctor waits for what an application does, in seconds.

    Attributes:
        start_s: Until it is ready; None is what its design.toml says. If no offsets say how far
            it is, its first output is waited for as long.
        idle_s: For its next commit, while records of its input wait.
        stop_s: Until its process has ended after the signal.
        hold_s: For a commit, while its outputs are held back; a client's timer has 5 s by default.
    """

    start_s: float | None = None
    idle_s: float = 10.0
    stop_s: float = 10.0
    hold_s: float = 6.5


@dataclass(frozen=True)
class Site:
    """The broker and the run of a visit, and the folder of its logs."""

    run: RunScope
    broker: Broker
    logs: Path
    seed: int = 1


class _Ended(Exception):
    """A process of the application has ended by itself."""


@dataclass(frozen=True)
class _Process:
    """A process of the application, with its session and its log."""

    part: deployed.Part
    running: Guarded
    session: Session
    log: Log

    def pids(self) -> list[int]:
        """Return the ids of its living processes.

        The process that stands for a container is none of them.
        """
        return (self.session.containers or self.session).pids()

    def lines(self) -> list[str]:
        """Return the lines of its log so far."""
        return read_bytes(self.log.path).decode(errors="replace").splitlines()


def visit(site: Site, manifest: Manifest, patience: Patience, say: Say) -> s.Visit:
    """Start an application, give it records, stop it, and return what was seen.

    Args:
        site: Where it runs.
        manifest: Its design.toml; it has no adapter.
        patience: How long it is waited for.
        say: Is told what begins.

    Raises:
        MachineProblem: Its process cannot be started, or the proxy failed.
    """
    under_way = _Visit(site, manifest, patience, say)
    try:
        return under_way.whole()
    finally:
        under_way.close()


def names_of(
    manifest: Manifest, application_id: str, bootstrap: str, disks: Path, temporary: Path
) -> dict[str, str]:
    """Return the text for each placeholder of an application's file.

    Args:
        manifest: Its design.toml.
        application_id: A part of its names.
        bootstrap: The addresses of the broker.
        disks: The folder of its disks.
        temporary: The folder for temporary files.
    """
    assert manifest.application
    given = manifest.application.topics(application_id)
    topics = {f"input.{role}": given[role] for role in manifest.application.input}
    topics |= {f"output.{role}": given[role] for role in manifest.application.output}
    return topics | {
        "python": PYTHON,
        "dir": str(manifest.folder),
        "bootstrap": bootstrap,
        "application_id": application_id,
        "instance": "a",
        "state_dir": str(disks / "state"),
        "durable_dir": str(disks / "durable"),
        "tmp_dir": str(temporary),
        "session_timeout_ms": str(SESSION_MS),
        "transaction_timeout_ms": str(TRANSACTION_MS),
        "commit_interval_ms": str(COMMIT_MS),
        "mode": manifest.modes[0],
    }


class _Visit:
    """One visit under way."""

    def __init__(self, site: Site, manifest: Manifest, patience: Patience, say: Say) -> None:
        assert manifest.application
        self.site = site
        self.manifest = manifest
        self.subject = manifest.application
        self.patience = patience
        self.say = say
        self.application_id = application_id = f"doctor-{uuid.uuid4().hex[:8]}"
        self.reading = Reading(site.broker.bootstrap, site.broker.client)
        self.proxy = Proxy(site.broker.bootstrap)
        self.wire = Wire(self.proxy)
        self.client = site.broker.client
        security: Security | None = None
        if manifest.security != "plaintext":
            security = secured(manifest.security, site.run.scratch / f"{application_id}-security")
            self.client = security.client
        self.door = self.proxy.door(DOOR, security)
        self.is_fenced = self.subject.fence == NAMESPACE
        # Asked before the wire is listened to: it is no client of the application.
        self.broker = advertised(self.door, self.client) if self.is_fenced else [self.door]
        self.fence: Namespace | None = None
        self.proxy.taps.append(self.wire.hear)
        topics = self.subject.topics(application_id)
        self.inputs = {role: topics[role] for role in self.subject.input}
        self.outputs = {role: topics[role] for role in self.subject.output}
        self.feed = Feed(self.reading.settings, application_id)
        self.ends: dict[str, int] = {}
        self.sent: list[Send] = []
        self.peers: set[Address] = set()
        self.over = threading.Event()
        self.query: s.Query | None = None
        self.end: s.End | None = None
        self.ready_s: float | None = None
        self.ran_s = 0.0
        self.is_stalled = False
        self.ahead: bool | None = None
        # Partition -> the end of the output when it was still last; nothing was written before.
        nothing = dict.fromkeys(range(PARTITIONS), 0)
        self.outputs_end = [(nothing, nothing) for _ in self.outputs]
        self.processes: list[_Process] = []
        self.watcher = Heard(self._watch, name=f"fence {application_id}")

    def whole(self) -> s.Visit:
        """Go through all steps, and return what was seen."""
        topics = [*self.inputs.values(), *self.outputs.values()]
        self.reading.create(dict.fromkeys(topics, PARTITIONS))
        self._send(0, FIRST, ABORTED)
        self.first_ends = dict(self.ends)
        try:
            self._start()
            with contextlib.suppress(_Ended):
                self._live()
            self.ran_s = time.monotonic() - self.began_s
            early = self._ended_early()
            if early is None:
                self._stop()
        finally:
            self.over.set()
            for process in self.processes:
                process.session.kill()
                process.log.close()
        self.watcher.join(GONE_S)
        raise_failure()
        trouble = self.proxy.look()
        if trouble.failure:
            raise MachineProblem(trouble.failure)
        return self._seen(early, trouble.breach)

    def close(self) -> None:
        """Close the clients, the proxy and the fence."""
        if self.fence:
            self.fence.close()
        self.proxy.close()
        self.reading.close()

    # --- the steps

    def _send(self, wave: int, count: int, aborted: int = 0) -> None:
        """Write records of the application's own samples to its inputs."""
        sends = made_for(
            self.subject.input,
            self.site.seed,
            wave=wave,
            count=count,
            partitions=PARTITIONS,
            aborted_transactions=aborted,
        )
        self.sent += sends
        self.ends |= self.feed.write(self.inputs, self.subject.role_in, sends)

    def _start(self) -> None:
        """Start its processes.

        Raises:
            MachineProblem: One of them cannot be run.
        """
        disks = self.site.run.scratch / self.application_id
        for folder in ("state", "durable"):
            (disks / folder).mkdir(parents=True)
        self.site.logs.mkdir(parents=True, exist_ok=True)
        temporary = self.site.run.scratch / "tmp"
        names = names_of(self.manifest, self.application_id, self.door, disks, temporary)
        names |= deployed.credentials(self.client)
        self.group = filled(self.subject.group or "", names)
        tables = {name: table.model_dump() for name, table in self.subject.process.items()}
        rendered = self.site.run.scratch / f"{self.application_id}-rendered"
        self.say(f"{self.manifest.name} starts")
        self.began_s = time.monotonic()
        given = deployed.of_caller(
            (*self.subject.inherit, *self.subject.secrets, *self.manifest.environment),
            environment_of(self.manifest, self.site.run),
        )
        parts = deployed.parts(tables, self.subject.signals.ready, names, rendered, given)
        if self.is_fenced:
            outside_of_it = Outside(self.broker, self.subject.hosts, self.subject.peers)
            parts, self.fence = fenced(parts, outside_of_it, disks)
        for part in parts:
            self.processes.append(self._spawned(part))
        self.watcher.start()

    def _spawned(self, part: deployed.Part) -> _Process:
        """Start a process.

        Raises:
            MachineProblem: It cannot be run.
        """
        tag = uuid.uuid4().hex
        if part.is_contained:
            self.site.run.containers()
        variables = of_a_bridge if part.is_contained else environment_of
        environment = variables(self.manifest, self.site.run) | part.environment
        number = len(self.processes)
        log = Log(self.site.logs / f"{self.application_id}{f'-{part.name}' if number else ''}.log")
        with log.opened() as output:
            child = Child(
                part.command,
                self.manifest.folder,
                environment | {INSTANCE_TAG: tag},
                output,
                output,
            )
            try:
                running = self.site.run.spawn(child)
            except OSError as error:
                log.close()
                raise MachineProblem(
                    f"{part.command[0]} cannot be run ({error.strerror}); see `command` in "
                    f"{self.manifest.file}."
                ) from None
        assert running.stdin
        running.stdin.close()
        session = Session.of(running, tag, has_containers=part.is_contained)
        return _Process(part, running, session, log)

    def _live(self) -> None:
        """Wait until it is ready, and give it more when it has done the first records.

        Raises:
            _Ended: A process ended by itself.
        """
        start_s = self.patience.start_s or self.subject.signals.start_s
        if not self._until(self._is_ready, start_s):
            return
        self.ready_s = time.monotonic() - self.began_s
        self.say(f"it is ready after {self.ready_s:.1f} s, and reads {FIRST} records")
        self._until(self._has_begun, self.patience.idle_s)
        if not self._drained():
            self.is_stalled = True
            return
        self._second()
        self._until(self._is_settled, self.patience.idle_s)
        self._pause(SETTLE_S)
        self._until(self._answers, ANSWER_S)

    def _second(self) -> None:
        """Give it the later records; if a commit may come too early, hold its outputs back first.

        None does in a transaction, nor if the offsets do not say that outputs are done. A producer
        has one connection to the broker, so all outputs wait for those of the first one.
        """
        if self.wire.transactions or self.manifest.progress != "group":
            self.say(f"it reads {LATER} more")
            self._send(1, LATER)
            self.is_stalled = not self._drained()
            return
        self.say(f"it reads {LATER} more, and its outputs are held back")
        self._pause(SETTLE_S)
        rule = Rule(DOOR, "produce", "hold", topic=next(iter(self.outputs.values())))
        self.proxy.arm(rule)
        acknowledged = self.wire.acknowledged
        self._send(1, LATER)
        try:
            is_ahead = self._until(self._has_committed_a_partition, self.patience.hold_s)
            # An output that passed all the same may be of these records: then nothing is known.
            if not is_ahead or self.wire.acknowledged == acknowledged:
                self.ahead = is_ahead
        finally:
            rule.struck.set()  # if it was not met by now, it strikes no more
            self.proxy.release(rule)
        self.is_stalled = not self._drained()

    def _stop(self) -> None:
        """Tell it to stop, and wait until it has ended.

        Its exit code is the first that is not 0 of its processes.
        """
        name = self.subject.signals.stop
        self.say(f"it is told to stop by {name}")
        began_s = time.monotonic()
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.running.pid, signal.Signals[name])
        codes = list[int]()
        with contextlib.suppress(subprocess.TimeoutExpired):
            for process in self.processes:
                left_s = began_s + self.patience.stop_s - time.monotonic()
                codes.append(process.running.wait(max(0.0, left_s)))
        is_over = len(codes) == len(self.processes)
        code = next(filter(None, codes), 0) if is_over else None
        seconds = round(time.monotonic() - began_s, 3)
        members = 0 if code is None else self._members_left()
        self.end = s.End(signal=name, seconds=seconds, code=code, members=members)

    # --- looking

    def _until(self, reached: Callable[[], bool], within_s: float) -> bool:
        """Look until something is so; return whether it became so in time.

        Raises:
            _Ended: The process ended by itself first.
        """
        until = time.monotonic() + within_s
        while not reached():
            if self._ended_early() is not None:
                raise _Ended
            if time.monotonic() > until:
                return False
            time.sleep(LOOK_S)
        return True

    def _ended_early(self) -> int | None:
        """Return the exit code of a process that has ended; None if all of them run."""
        codes = (process.running.poll() for process in self.processes)
        return next((code for code in codes if code is not None), None)

    def _pause(self, seconds: float) -> None:
        self._until(lambda: False, seconds)

    def _is_ready(self) -> bool:
        """Return whether it is ready as its file says, in whatever group it is."""
        ready = self.subject.signals.ready
        if ready.startswith("log:"):
            return all(
                any(re.search(ready[4:], line) for line in process.lines())
                for process in self.processes
            )
        if ready.startswith(deployed.HTTP):
            parts = [each.part for each in self.processes]
            return self._within(lambda: deployed.all_answer(parts))
        return any(self._holds_something(group) for group in list(self.wire.groups))

    def _holds_something(self, group: str) -> bool:
        members = self.reading.groups.members(group, self._places())
        return any(member.inputs or member.others for member in members or ())

    def _places(self) -> list[str]:
        topics = self.inputs.values()
        return [f"{topic}-{partition}" for topic in topics for partition in range(PARTITIONS)]

    def _drained(self) -> bool:
        """Wait until its input is done; return False if it stops before that.

        Its group has committed the input then. If that does not say that outputs are done, they
        have been still for as long as one may take.

        Raises:
            _Ended: The process ended by itself first.
        """
        if self.manifest.progress != "none" and not self._has_committed_all():
            return False
        return self.manifest.progress == "group" or self._rests()

    def _rests(self) -> bool:
        """Wait until new outputs have come and been still; return False if none comes.

        Raises:
            _Ended: The process ended by itself first.
        """
        stillness = Stillness(lambda: round(1000 * time.monotonic()))
        before = self.outputs_end
        still_ms = max(table.visible_within_ms for table in self.subject.output.values())

        def is_still() -> bool:
            ends = self._ends()
            since_ms = stillness.look(ends)
            is_stable = all(stable == end for stable, end in ends)
            return is_stable and ends != before and since_ms >= still_ms

        start_s = self.patience.start_s or self.subject.signals.start_s
        is_over = self._until(is_still, start_s + still_ms / 1000)
        self.outputs_end = self._ends()
        return is_over

    def _has_committed_all(self) -> bool:
        """Wait until its group has committed its input; return False if it stops before that.

        Raises:
            _Ended: The process ended by itself first.
        """
        until = time.monotonic() + self.patience.idle_s
        last: object = None
        while self._left():
            now = (len(self.wire.commits), self._committed())
            if now != last:
                last = now
                until = time.monotonic() + self.patience.idle_s
            is_over = time.monotonic() > until
            if not self._until(lambda: not self._left(), self.patience.idle_s / 8) and is_over:
                return False
        return True

    def _has_begun(self) -> bool:
        """Return whether it has begun to read each partition that had records at its start."""
        begun = {f"{topic}-{partition}" for topic, partition in list(self.wire.first_fetched)}
        return begun >= self.first_ends.keys()

    def _left(self) -> int:
        """Return the partitions of its input that are not committed to their ends.

        If it began at their ends, the records before these are none of its own.
        """
        committed = self._committed()
        skipped = self.first_ends if self._reset() == "latest" else {}
        return sum(
            committed.get(place, 0) < end
            for place, end in self.ends.items()
            if end > skipped.get(place, 0)
        )

    def _committed(self) -> dict[str, int]:
        """Return the offsets that are committed by the group that it is in."""
        group = self._own_group()
        if group is None:
            return {}
        wanted = dict.fromkeys(self.inputs.values(), PARTITIONS)
        return self.reading.groups.committed(group, wanted, stable=True) or {}

    def _own_group(self) -> str | None:
        """Return the declared group if it joined that, or else the first that it joined."""
        joined = list(self.wire.groups)
        return self.group if self.group in joined else next(iter(joined), None)

    def _members_left(self) -> int:
        """Return how many members its group still has; none is looked for if they are static."""
        group = self._own_group()
        if group is None or self.wire.groups[group].instance_ids:
            return 0
        until = time.monotonic() + LEAVE_S
        while left := len(self.reading.groups.members(group, self._places()) or ()):
            if time.monotonic() > until:
                break
            time.sleep(LOOK_S)
        return left

    def _has_committed_a_partition(self) -> bool:
        """Return whether it asked to commit all later records of a partition."""
        asked = self.wire.committed
        for place, end in self.ends.items():
            topic, _, partition = place.rpartition("-")
            is_later = end > self.first_ends.get(place, 0)
            if is_later and asked.get((topic, int(partition)), 0) >= end:
                return True
        return False

    def _answers(self) -> bool:
        """Ask it for the key of its last output; return whether nothing else is to be asked."""
        contract = contract_of(self.manifest)
        assert contract
        own = next((each for each in contract.outputs if each.asked is not None), None)
        last = last_of(self._records(self.outputs[own.writes])) if own else None
        if own is None or last is None:
            return True
        http = self.subject.query[own.writes].http
        parts = [each.part for each in self.processes]
        self.query = self._within(lambda: answer(own, http, parts, last))
        return self.query.fits

    def _within(self, act: Callable[[], Result]) -> Result:
        """Ask its processes where they are: inside of the fence, if there is one."""
        return self.fence.within(act) if self.fence else act()

    def _ends(self) -> list[tuple[dict[int, int], dict[int, int]]]:
        """Return where each output is stable to, and where it ends, by partition."""
        return [self.reading.ends(topic, PARTITIONS) for topic in self.outputs.values()]

    def _is_settled(self) -> bool:
        """Return whether no transaction of its outputs is open."""
        ends = self._ends()
        return all(stable == end for stable, end in ends)

    def _reset(self) -> s.Reset | None:
        """Return where it began to read partitions with records, in a group that had no offsets."""
        begun = [
            offset
            for (topic, partition), offset in list(self.wire.first_fetched.items())
            if f"{topic}-{partition}" in self.first_ends
        ]
        if not begun:
            return None
        if LATEST not in self.wire.looked_for and all(offset == 0 for offset in begun):
            return "earliest"
        return "latest" if any(begun) else "earliest"

    def _watch(self) -> None:
        """Note the addresses that its processes are connected to, until the visit is over."""
        broker = {_address(each) for each in self.site.broker.bootstrap.split(",")}
        inside = broker | resolved(self.subject.peers)
        while not self.over.wait(LOOK_S) and not self.is_fenced:
            pids = [pid for process in self.processes for pid in process.pids()]
            self.peers |= outside(pids, inside | self.proxy.addresses)

    # --- the result

    def _seen(self, early: int | None, breach: str) -> s.Visit:
        outputs = {role: self._records(topic) for role, topic in self.outputs.items()}
        of_inputs = [
            told_apart(described, [send for send in self.sent if send.role == role])
            for role, described in self.subject.input.items()
        ]
        texts = Texts(*(frozenset().union(*each) for each in zip(*of_inputs, strict=True)))
        wire = self.wire
        isolation = {
            level for topic in self.inputs.values() for level in wire.isolation.get(topic, ())
        }
        return s.Visit(
            s.Seen(
                application_id=self.application_id,
                ready_by=self.subject.signals.ready,
                ready_s=_rounded(self.ready_s),
                ended_early=early,
                ran_s=round(self.ran_s, 3),
                is_stalled=self.is_stalled,
                groups={name: self._group(name) for name in wire.groups},
                transactions=wire.transactions,
                isolation=tuple(sorted(_isolation(each) for each in isolation)),
                reset=self._reset(),
                topics=self._topics(),
                commits=self._commits(),
                outputs={
                    role: judged(outputs[role], texts, table.format, table.ignore)
                    for role, table in self.subject.output.items()
                },
                query=self.query,
                end=self.end,
                breach=breach,
                peers=tuple(sorted(f"{host}:{port}" for host, port in self.peers)),
                refused=self.fence.refused if self.fence else (),
                clients=tuple(sorted({name for name in wire.clients.values() if name})),
                versions={api: max(found) for api, found in sorted(wire.versions.items())},
                log=tuple(deployed.last_words(self._last_lines(), LOG_LINES)),
            ),
            tuple(record for topic in self.inputs.values() for record in self._records(topic)),
            tuple(record for records in outputs.values() for record in records),
            {**self.inputs, **self.outputs},
        )

    def _last_lines(self) -> list[str]:
        """Return the log of the process that has ended by itself; else those of all of them."""
        ended = [each for each in self.processes if each.running.poll()]
        return [line for each in ended or self.processes for line in each.lines()]

    def _group(self, name: str) -> s.Group:
        heard = self.wire.groups[name]
        session_ms = heard.session_timeout_ms
        if session_ms is None and (found := self.reading.groups.session(name)):
            session_ms = found.session_ms
        return s.Group(
            protocol=heard.protocol,
            members=len(heard.members),
            static=tuple(sorted(heard.instance_ids)),
            session_timeout_ms=session_ms,
        )

    def _topics(self) -> s.Topics:
        wire = self.wire
        return s.Topics(
            given={**self.inputs, **self.outputs},
            read=tuple(sorted({topic for topic, _ in wire.first_fetched})),
            written=tuple(sorted(wire.written)),
            created=tuple(sorted(wire.created)),
            unknown=tuple(sorted(wire.unknown - wire.created)),
            outside=tuple(sorted(wire.outside)),
        )

    def _commits(self) -> s.Commits:
        commits = self.wire.commits
        gaps = [later.at_s - earlier.at_s for earlier, later in pairwise(commits)]
        committed = self._committed()
        inputs = [send for send in self.sent if not send.aborted]
        return s.Commits(
            by=tuple(sorted({commit.api for commit in commits})),
            count=len(commits),
            usual_gap_ms=round(1000 * median(gaps)) if gaps else None,
            done=len(inputs) - self._waiting(committed),
            due=len(inputs),
            ahead=self.ahead,
        )

    def _waiting(self, committed: dict[str, int]) -> int:
        """Return the records that are visible, and not before the committed offsets."""
        records = (record for topic in self.inputs.values() for record in self._records(topic))
        return sum(
            record.offset >= committed.get(f"{record.topic}-{record.partition}", 0)
            for record in records
        )

    def _records(self, topic: str) -> tuple[Record, ...]:
        """Return the records of a topic that a reader of committed data is given."""
        position = dict.fromkeys(range(PARTITIONS), 0)
        found = self.reading.records(topic, position, committed=True)
        return tuple(recorded(found, lambda _partition, _offset: 0))


def _isolation(level: int) -> s.Isolation:
    return "read_committed" if level == COMMITTED_ONLY else "read_uncommitted"


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)
