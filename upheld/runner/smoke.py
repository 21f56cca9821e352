"""Check that an adapter is sound before its design is judged, program by program.

It is a conversation without a fault. A design that breaks the protocol would be judged wrong for
reasons that have nothing to do with its promises. So `smoke` asks everything once on a quiet
broker. A check says what was seen. The first that fails ends a program's turn, since the rest would
only repeat it. A design that says no hello, or nothing until a deadline, has no further turn: each
would take the same minute.
"""

import contextlib
import secrets
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka import KafkaException, Producer

from upheld.brokers import Broker
from upheld.generators.ledger import Send, ledger
from upheld.generators.pulse import signals
from upheld.generators.tables import Tables
from upheld.generators.visits import visits
from upheld.kafka.reading import Reading
from upheld.programs import PROGRAMS
from upheld.protocol.manifest import Manifest
from upheld.protocol.messages import Mode, Ready, Start, Stopped
from upheld.report.logs import last_lines
from upheld.supervisor.instance import Instance, Options, Overdue
from upheld.supervisor.reaper import RunScope
from upheld.text import visible
from upheld.trial.instances import TABLE_S
from upheld.trial.rig import leave
from upheld.trial.trial import ID_BYTES
from upheld.ui.progress import Progress
from upheld.ui.timeleft import Mean
from upheld.verdicts import AdapterBreach

OUTPUT_S: Final = 30.0
STOP_MS: Final = 10_000
SESSION_MS: Final = 6_000
TRANSACTION_MS: Final = 10_000
PARTITIONS: Final = 2
LOG_LINES: Final = 8
STEPS: Final = (
    "says hello",
    "starts",
    "answers its input with an output",
    "stops",
    "leaves nothing",
)
_ENTRIES: Final = 12


class Check(NamedTuple):
    """One check: its name, whether it passed, and what was seen.

    If it failed, the last lines of the design's log stand beside it.
    """

    check: str
    ok: bool
    text: str
    log: tuple[str, ...] = ()


class Conversation(NamedTuple):
    """A program and the mode in which it is asked for."""

    program: str
    mode: Mode

    def __str__(self) -> str:
        return f"{self.program}-{self.mode}"


@dataclass
class Watch:
    """Shows the checks on a design's adapter, one by one."""

    design: str
    progress: Progress
    mean: Mean

    def started(self, what: str) -> None:
        """Show which check is under way."""
        self.progress.started(f"{self.design} {what}")

    def finished(self, check: Check) -> None:
        """Print what a check saw."""
        self.mean.finished()
        said = f": {check.text}" if check.text else ""
        self.progress.finished(
            f"{self.design} {check.check}{said}",
            "ok" if check.ok else "BAD",
            style="green" if check.ok else "red",
            is_quiet=check.ok and self.progress.is_terse,
        )
        for line in check.log:
            self.progress.message(f"  log  {line}")

    def skip(self, count: int) -> None:
        """Count the checks of a turn that ended early as left out."""
        self.mean.skip(count)
        self.progress.skip(count)

    def leave_out(self, conversations: Sequence[Conversation]) -> None:
        """Say which conversations are not held, after one that ended in silence."""
        self.skip(len(conversations) * len(STEPS))
        if conversations:
            self.progress.message(
                f"{self.design}: not asked after that: {', '.join(map(str, conversations))}; "
                "--program and --mode ask for one"
            )


def conversations(
    manifest: Manifest, programs: Collection[str] = (), modes: Collection[str] = ()
) -> list[Conversation]:
    """Return the conversations with a design, of these programs and modes or of all."""
    return [
        Conversation(program, mode)
        for program in manifest.programs
        for mode in manifest.modes
        if (not programs or program in programs) and (not modes or mode in modes)
    ]


def count(conversations: Sequence[Conversation]) -> int:
    """Return how many checks there are in these conversations, if each is ok."""
    return len(conversations) * len(STEPS)


@dataclass(frozen=True)
class Site:
    """The broker, the run and the folder of logs with which an adapter is checked."""

    broker: Broker
    run: RunScope
    log_dir: Path
    time_scale: float = 1.0


def smoke(
    manifest: Manifest,
    site: Site,
    watch: Watch | None = None,
    asked: Sequence[Conversation] | None = None,
) -> list[Check]:
    """Return every check on a design's adapter; the adapter is sound if all are ok.

    Args:
        manifest: The design.
        site: Where it is asked.
        watch: Shows the checks.
        asked: The conversations to hold; all if it is None.
    """
    reading = Reading(site.broker.bootstrap, site.broker.client)
    asked = conversations(manifest) if asked is None else asked
    try:
        checks = []
        for number, conversation in enumerate(asked, 1):
            turn = _Turn(manifest, conversation, site, reading)
            checks += turn.checks(watch)
            if turn.is_silent:
                if watch:
                    watch.leave_out(asked[number:])
                break
        return checks
    finally:
        if not site.broker.ours:
            leave(reading)
        reading.close()


class _Turn:
    """One program in one mode, from hello to the end of its last process."""

    def __init__(
        self, manifest: Manifest, conversation: Conversation, site: Site, reading: Reading
    ) -> None:
        self.manifest = manifest
        self.program = conversation.program
        self.mode = conversation.mode
        self.site = site
        self.reading = reading
        self.what = str(conversation)
        self.application_id = f"smoke-{secrets.token_hex(ID_BYTES)}-{self.program}"
        self.is_silent = False  # a further conversation would most likely end in the same way

    def checks(self, watch: Watch | None) -> list[Check]:
        """Go through the conversation, and leave no process behind in any case."""
        found: list[Check] = []
        for seen in self._seen(watch):
            check = seen._replace(text=visible(seen.text))
            found.append(check)
            if watch:
                watch.finished(check)
        if watch:
            watch.skip(len(STEPS) - len(found))
        return found

    def _begins(self, watch: Watch | None, number: int) -> None:
        if watch and number < len(STEPS):
            watch.started(f"{self.what} {STEPS[number]}")

    def _seen(self, watch: Watch | None) -> Iterator[Check]:
        if self.program not in PROGRAMS:
            known = ", ".join(PROGRAMS)
            yield Check(self.what, False, f"there is no program {self.program}; known are {known}")
            return
        instance = None
        topics = {role: f"{self.application_id}-{role}" for role in PROGRAMS[self.program].topics}
        try:
            self.reading.reserve(self.application_id, groups_too=not self.site.broker.ours)
            self.reading.create(dict.fromkeys(topics.values(), PARTITIONS))
            began = time.monotonic()
            options = Options(time_scale=self.site.time_scale)
            instance = Instance(self.manifest, self.site.run, self.site.log_dir, options)
            self._begins(watch, 0)
            for number, step in enumerate(self._steps(instance, topics, began), 1):
                yield step if step.ok else step._replace(log=_log(instance))
                if not step.ok:
                    break
                self._begins(watch, number)
        except AdapterBreach as breach:
            self.is_silent = isinstance(breach, Overdue) or not (instance and instance.hello)
            log = _log(instance) if instance else ()
            yield Check(f"{self.what} keeps the protocol", False, str(breach), log)
        finally:
            if instance:
                instance.kill()
            with contextlib.suppress(KafkaException):
                self.reading.clear(self.application_id)

    def _steps(self, instance: Instance, topics: dict[str, str], began: float) -> Iterator[Check]:
        hello = instance.greet()
        yield Check(
            f"{self.what} says hello", True, f"{hello.name} {hello.version}, {_since(began)}"
        )

        # A broadcast input is read at the start, so it has to be there by then.
        is_broadcast = bool(PROGRAMS[self.program].broadcast)
        if is_broadcast:
            self._produce(topics)
        began = time.monotonic()
        started = instance.start(self._start(topics))
        ok = isinstance(started, Ready)
        yield Check(
            f"{self.what} starts",
            ok,
            f"ready, {_since(began)}" if ok else f"declared, yet {started!r}",
        )

        began = time.monotonic()
        if not is_broadcast:
            self._produce(topics)
        named = started.table if isinstance(started, Ready) else None
        yield self._output(instance, named or topics[PROGRAMS[self.program].writes], began)

        began = time.monotonic()
        stopped = instance.stop(STOP_MS)
        ok = isinstance(stopped, Stopped)
        yield Check(
            f"{self.what} stops", ok, f"stopped, {_since(began)}" if ok else f"answered {stopped!r}"
        )

        instance.check()
        left = instance.survivors
        text = (
            f"processes {left} outlived it"
            if left
            else "no process below its guard, no stray line on stdout"
        )
        yield Check(f"{self.what} leaves nothing", not left, text)

    def _start(self, topics: dict[str, str]) -> Start:
        disk = self.site.run.scratch / self.application_id / self.mode
        for folder in (disk / "state", disk / "durable"):
            folder.mkdir(parents=True)
        return Start(
            program=self.program,
            application_id=self.application_id,
            instance="a",
            mode=self.mode,
            bootstrap=self.site.broker.bootstrap,
            client=self.site.broker.client,
            topics=topics,
            parameters=PROGRAMS[self.program].parameters,
            session_timeout_ms=SESSION_MS,
            transaction_timeout_ms=TRANSACTION_MS,
            state_dir=str(disk / "state"),
            durable_dir=str(disk / "durable"),
        )

    def _produce(self, topics: dict[str, str]) -> None:
        """Produce a few records, none of them in an aborted transaction."""
        producer = Producer(self.reading.settings | {"enable.idempotence": True})
        for send in _sends(self.program):
            producer.produce(
                topics[send.role or PROGRAMS[self.program].reads],
                send.value,
                send.key,
                send.partition,
                headers=list(send.headers),
                timestamp=send.timestamp_ms,
            )
        producer.flush(OUTPUT_S)

    def _output(self, instance: Instance, topic: str, began: float) -> Check:
        """Wait for a first visible output; the features judge whether it is right."""
        check = f"{self.what} answers its input with an output"
        partitions = self.reading.partitions(topic, TABLE_S * self.site.time_scale)
        if not partitions:
            return Check(check, False, f"it said table {topic}, and the broker has no such topic")
        position = dict.fromkeys(range(partitions), 0)
        wait_s = OUTPUT_S * self.site.time_scale
        until = began + wait_s
        while time.monotonic() < until:
            instance.check()
            if outputs := self.reading.records(topic, position, committed=True):
                return Check(check, True, f"{len(outputs)} visible, {_since(began)}")
            if instance.is_over:
                end = instance.failed or f"it exited with {instance.exit_code}"
                return Check(check, False, f"{end!r}; its log: {instance.stderr_path}")
        self.is_silent = True
        text = f"none visible to read_committed in {wait_s:g} s; see {instance.stderr_path}"
        return Check(check, False, text)


def _sends(program: str) -> Sequence[Send]:
    if PROGRAMS[program].beside:
        tables = Tables(
            1, program, rows=_ENTRIES, partners=8, partitions=PARTITIONS, beside=PARTITIONS
        )
        return tables.partner_changes() + tables.insertions()
    if PROGRAMS[program].merged:
        made = signals(1, count=_ENTRIES, robots=4, partitions=PARTITIONS)
        return [send for send in made if not send.aborted]
    if program == "batcher":
        return visits(1, events=_ENTRIES, customers=4, partitions=PARTITIONS, plain=True)
    return ledger(
        1, entries=_ENTRIES, accounts=8, branches=4, partitions=PARTITIONS, aborted_transactions=0
    )


def _log(instance: Instance) -> tuple[str, ...]:
    return tuple(last_lines(instance.stderr_path, LOG_LINES))


def _since(began: float) -> str:
    return f"{time.monotonic() - began:.1f} s"
