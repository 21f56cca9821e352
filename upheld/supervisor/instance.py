"""One running instance of a design: spawned, asked, watched and killed as a whole.

Every exchange has a deadline. Every way of breaking the protocol ends in one `AdapterBreach`, which
says what was seen, what was expected and where the log lies. A breach is final: each later request
raises the same one. The answers of an adapter that is out of step belong to no request.
"""

import contextlib
import itertools
import os
import subprocess
import threading
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Final, NamedTuple

from pydantic import ValidationError

from upheld.protocol.manifest import Manifest
from upheld.protocol.messages import (
    REPLIES_TO,
    REPLY,
    SPOKEN,
    Activate,
    Deactivate,
    Error,
    Failed,
    Hello,
    HelloReply,
    Lag,
    Measure,
    Measured,
    Message,
    Notice,
    Query,
    Ready,
    StandingBy,
    Start,
    Stop,
    Stopped,
    Unsupported,
    Workers,
    version_of,
)
from upheld.supervisor import breaches, secrets
from upheld.supervisor.environment import Scope, file_name, of_a_bridge
from upheld.supervisor.guarded import Child, Spawn
from upheld.supervisor.log import Log
from upheld.supervisor.names import wrong_name
from upheld.supervisor.session import INSTANCE_TAG, Session
from upheld.threads import Heard, raise_failure
from upheld.verdicts import AdapterBreach

HELLO_S: Final = 60.0
START_S: Final = 60.0
QUERY_S: Final = 5.0
MEASURE_S: Final = 30.0
STOP_GRACE_S: Final = 5.0
MAX_LINE_BYTES: Final = 1 << 20
MAX_UNASKED_LINES: Final = 1000
MAX_NOTICES: Final = 10_000  # that are not recorded yet
CHUNK_BYTES: Final = 1 << 16
CLOSED_S: Final = 3.0  # after the end of its stdout, an instance ends soon
_DRAIN_S: Final = 2.0  # at most, to read what an instance wrote before it exited
_LOOK_S: Final = 0.05  # how often an exit is looked for while an answer is awaited
_serial = itertools.count(1)


class Silence(AdapterBreach):
    """No answer: the deadline passed, or the process ended first.

    After a fault the design is responsible for it.
    """


class Overdue(Silence):
    """No answer within the deadline, from a process that still runs."""


class Noticed(NamedTuple):
    """A notice, and when it was read (seconds of the monotonic clock)."""

    notice: Notice
    at_s: float


@dataclass(frozen=True)
class Options:
    """How an instance differs from others of its design.

    `environment` holds its own variables, `launch` starts its process if the run does not, and all
    deadlines are
    multiplied by `time_scale`.
    """

    name: str | None = None
    time_scale: float = 1.0
    environment: dict[str, str] = field(default_factory=dict)
    launch: Spawn | None = None


class Instance:
    """One process session of a design; construct it, `greet()`, then `start(…)`."""

    def __init__(
        self, manifest: Manifest, run: Scope, log_dir: Path, options: Options | None = None
    ) -> None:
        options = options or Options()
        self.manifest = manifest
        self.environment = options.environment
        self.name = options.name or f"{file_name(manifest.name)}-{next(_serial)}"
        self.time_scale = options.time_scale
        self.hello: HelloReply | None = None
        self.failed: Failed | None = None
        self.notices: SimpleQueue[Noticed] = SimpleQueue()
        self.breach: AdapterBreach | None = None
        self.survivors: list[int] = []
        self.stderr_path = log_dir / f"{self.name}.stderr"
        self._condition = threading.Condition()
        self._asked: Message | None = None
        self._answer: Message | None = None
        self._half = b""
        self._unasked = 0
        self._is_free = True  # holds no start
        self._started: Start | None = None  # the last start, by which names in `ready` are checked
        self._gone = False
        self._closed_s = 0.0  # when its stdout ended
        self.boot_s = 0.0  # from its spawn to its answer to hello
        self._spawned_s = time.monotonic()
        tag = uuid.uuid4().hex
        if manifest.images:
            run.containers()
        environment = of_a_bridge(manifest, run) | self.environment
        log_dir.mkdir(parents=True, exist_ok=True)
        self.log = Log(self.stderr_path)
        with self.log.opened() as stderr:
            try:
                self._process = (options.launch or run.spawn)(
                    Child(
                        manifest.command, manifest.folder, environment | {INSTANCE_TAG: tag}, stderr
                    )
                )
            except OSError as error:
                raise AdapterBreach(
                    f"{self.name}: {manifest.command[0]} cannot be run ({error.strerror}); "
                    f"see `command` and `environment` in {manifest.file}."
                ) from None
        self._session = Session.of(self._process, tag, has_containers=bool(manifest.images))
        self._listener = Heard(self._listen, name=f"listen {self.name}")
        self._listener.start()

    # --- the protocol

    def greet(self) -> HelloReply:
        """Ask `hello`, and compare the answer with the manifest."""
        reply = self._ask(Hello(), HELLO_S)
        self.boot_s = time.monotonic() - self._spawned_s
        if isinstance(reply, Failed):
            raise self._broken(
                f"failed at hello: {reply.kind}, {reply.message}. Expected an answer to hello"
            )
        assert isinstance(reply, HelloReply)
        if reply.protocol not in SPOKEN:
            spoken = " or ".join(map(str, SPOKEN))
            raise self._broken(f"speaks protocol {reply.protocol}. Expected protocol {spoken}")
        for name in ("name", "version", "programs", "modes", "capabilities"):
            said = getattr(reply, name)
            declared = getattr(self.manifest, name)
            if (said != declared) if isinstance(said, str) else (set(said) != set(declared)):
                raise self._broken(
                    f"says {name} {_plain(said)} at hello, and {self.manifest.file} declares "
                    f"{_plain(declared)}. Expected the two to agree"
                )
        self.hello = reply
        return reply

    def start(self, request: Start) -> Ready | StandingBy | Unsupported | Error | Failed:
        """Run a program, and return when the instance holds its input."""
        secrets.learn(request)
        self._started = request
        self._is_free = False
        reply = self._ask(request, START_S)
        self._session.know_containers()
        assert isinstance(reply, Ready | StandingBy | Unsupported | Error | Failed)
        return reply

    def query(self, table: str, key: str) -> Message:
        """Read one key of a table."""
        return self._ask(Query(table=table, key=key), QUERY_S)

    def lag(self) -> Message:
        """Ask how far the instance is behind its input."""
        return self._ask(Lag(), QUERY_S)

    def workers(self) -> Message:
        """Ask which processes share the instance's work."""
        return self._ask(Workers(), QUERY_S)

    def activate(self, after: dict[str, int]) -> Message:
        """Let a standby take over from these positions."""
        return self._ask(Activate(after=after), START_S)

    def deactivate(self) -> Message:
        """Have the instance finish and hand over."""
        return self._ask(Deactivate(), START_S)

    def measure(self) -> Measured | Error | Failed:
        """Ask how much state the instance holds; its capabilities say if it can tell."""
        reply = self._ask(Measure(), MEASURE_S)
        assert isinstance(reply, Measured | Error | Failed)
        return reply

    def stop(self, deadline_ms: int) -> Stopped | Error | Failed:
        """Close gracefully.

        An instance that is not reusable exits; its processes that are left are killed and listed.
        """
        until = time.monotonic() + (deadline_ms / 1000 + STOP_GRACE_S) * self.time_scale
        reply = self._ask(Stop(deadline_ms=deadline_ms), deadline_ms / 1000 + STOP_GRACE_S)
        assert isinstance(reply, Stopped | Error | Failed)
        self.log.catch_up()
        if isinstance(reply, Stopped) and "reusable" not in self.manifest.capabilities:
            self._hang_up()
            if self.wait_exit(max(0.0, until - time.monotonic())) is None:
                raise self._broken(
                    "answered stopped and still runs. Expected it to exit, or `reusable` among "
                    "its capabilities",
                    Overdue,
                )
            self.survivors = self.kill()
        return reply

    def _ask(self, request: Message, deadline_s: float) -> Message:
        """Send a request, and return its one reply within the deadline, which is scaled."""
        until = time.monotonic() + deadline_s * self.time_scale
        with self._condition:
            self.check()
            if self.failed:
                return self.failed
            self._asked = request
            self._answer = None
        with contextlib.suppress(OSError, ValueError):  # it has exited, which is noticed below
            assert self._process.stdin
            self._process.stdin.write(request.model_dump_json(exclude_none=True).encode() + b"\n")
            self._process.stdin.flush()
        with self._condition:
            while self._answer is None and self.failed is None:
                raise_failure()
                self.check()
                if self._process.poll() is not None:
                    self._condition.wait_for(
                        lambda: self._settled or not self._listener.is_alive(), _DRAIN_S
                    )
                    if not self._settled:
                        raise self._broken(self._exit_text(request), Silence)
                elif self._closed_s and time.monotonic() - self._closed_s > CLOSED_S:
                    raise self._broken(
                        f"closed its stdout before it answered {breaches.type_of(request)}, and "
                        f"still runs. {breaches.expected(request)}",
                        Silence,
                    )
                elif (left := until - time.monotonic()) <= 0:
                    raise self._broken(
                        self._silence_text(request, deadline_s * self.time_scale), Overdue
                    )
                else:
                    self._condition.wait(min(left, _LOOK_S))
            reply = self._answer or self.failed
            assert reply
            return reply

    def check(self) -> None:
        """Raise the breach of this instance, if there is one, whether asked or not."""
        if self._process.is_guard_lost and self.breach is None:
            self._broken(
                "ended its own parent, the guard that finds its processes. Expected it to signal "
                "none but its own processes"
            )
        if self.breach:
            raise self.breach

    # --- the processes

    @property
    def exit_code(self) -> int | None:
        """The exit code of the first process, negative for a signal; None while it runs.

        When it is known, all output of the process has been read.
        """
        if (code := self._process.poll()) is not None:
            self._listener.join(_DRAIN_S)
            self.log.catch_up()
        return code

    def wait_exit(self, deadline_s: float) -> int | None:
        """Wait for the first process to end, as it must after `failed`.

        Returns:
            Its exit code once its output is read, or None if it did not end.
        """
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(deadline_s)
        return self.exit_code

    @property
    def is_over(self) -> bool:
        """True if the instance works no more: it has said why, or has ended."""
        return self.failed is not None or self.exit_code is not None

    def takes_another_start(self) -> bool:
        """Return whether the instance is as good as new, and can be started again.

        It has let go of its last start, by a stop or by `failed`. If so, the `failed` is forgotten.
        """
        if "reusable" not in self.manifest.capabilities or self.exit_code is not None:
            return False
        self.log.catch_up()
        with self._condition:
            if self.breach or self.environment or self._asked or not self._is_free:
                return False
            self.failed = None
            return True

    def pids(self, named: Iterable[int] = ()) -> list[int]:
        """Return the ids of all living processes of the instance.

        Args:
            named: Ids that the design has named. A process that another program has started for it
                is among them alone.
        """
        return [] if self._gone else self._session.pids(named)

    def pause(self) -> list[int]:
        """Stop every process, and return their ids as evidence."""
        return [] if self._gone else self._session.pause()

    def resume(self) -> list[int]:
        """Let a paused instance go on, and return the ids of its processes."""
        return [] if self._gone else self._session.resume()

    def step(self, seconds: float) -> None:
        """Let a paused instance go on for some seconds."""
        if not self._gone:
            self._session.step(seconds)

    def kill(self) -> list[int]:
        """Kill every process, paused or not, and return their ids as evidence."""
        if self._gone:
            return []
        taken = self._session.kill()
        self._gone = True  # the kernel may give these numbers to strangers from here on
        self._process.wait()
        self._process.close()
        self._hang_up()
        self._listener.join(_DRAIN_S)
        self.log.close()
        return taken

    def _hang_up(self) -> None:
        with contextlib.suppress(OSError):
            assert self._process.stdin
            self._process.stdin.close()

    # --- listening, on a thread of its own

    @property
    def _settled(self) -> bool:
        return bool(self._answer or self.failed or self.breach)

    def _listen(self) -> None:
        """Read the output of the instance; a flood is left in the pipe, unread."""
        assert self._process.stdout
        with self._process.stdout as stdout:
            while chunk := os.read(stdout.fileno(), CHUNK_BYTES):
                *lines, self._half = (self._half + chunk).split(b"\n")
                with self._condition:
                    for line in lines:
                        self._take(line)
                    if len(self._half) > MAX_LINE_BYTES:
                        self._broken(
                            f"wrote a line of more than {MAX_LINE_BYTES} bytes to stdout: "
                            f"{secrets.shown(self._half)}. {breaches.ONE_LINE}"
                        )
                    self._condition.notify_all()
                if len(self._half) > MAX_LINE_BYTES or self._unasked > MAX_UNASKED_LINES:
                    self._hold_still()
                    return
        with self._condition:
            self._closed_s = time.monotonic()
            self._condition.notify_all()

    def _hold_still(self) -> None:
        """Keep the pipe open, unread, until the process ends.

        If it were closed, a flood would become a crash.
        """
        self._process.wait()

    def _take(self, line: bytes) -> None:
        """Sort one line: the awaited answer, a `failed`, or a breach."""
        try:
            message = secrets.masked(REPLY.validate_json(line))
        except ValidationError as error:
            self._unasked += 1
            if not self.breach:
                self._broken(breaches.garbled(self._asked, line, secrets.shown(line), error))
            return
        if self.hello and version_of(message) > self.hello.protocol:
            self._broken(
                f"said {secrets.shown(line)}, and it speaks protocol {self.hello.protocol}. "
                f"Expected it to say protocol {version_of(message)} at hello"
            )
        elif isinstance(message, Notice):
            self._take_notice(message)
        elif isinstance(message, Failed):
            self._take_failure(message)
        else:
            self._take_answer(message, line)

    def _take_failure(self, failed: Failed) -> None:
        """Keep the first loud stop; it answers a request that makes an instance work."""
        self.failed = self.failed or failed
        self._is_free = failed.again
        # To these requests it is the answer. Any other request has one of its own.
        if isinstance(self._asked, Start | Activate):
            self._asked = None

    def _take_answer(self, message: Message, line: bytes) -> None:
        """Take the answer to what was asked; any other one is a breach."""
        if self._asked is None:
            self._unasked += 1
            if self._unasked > MAX_UNASKED_LINES or not self.breach:
                self._broken(
                    f"said {secrets.shown(line)} though nothing was asked. "
                    "Expected one answer to each request, and nothing unasked but failed or notice"
                )
        elif not isinstance(message, REPLIES_TO[type(self._asked)]):
            self._broken(
                f"answered {breaches.type_of(self._asked)} with {secrets.shown(line)}. "
                f"{breaches.expected(self._asked)}"
            )
        elif isinstance(message, Ready) and (wrong := self._wrong_name(message)):
            self._broken(wrong)
        else:
            self._is_free = self._is_free or isinstance(message, Stopped)
            self._asked = None
            self._answer = message

    def _take_notice(self, notice: Notice) -> None:
        """Keep a notice until the harness records it; a flood of them is a breach."""
        if self.notices.qsize() < MAX_NOTICES:
            self.notices.put(Noticed(notice, time.monotonic()))
        else:
            self._broken(
                f"said more than {MAX_NOTICES} notices at once. Expected one for each partition"
            )

    # --- what a breach says

    def _wrong_name(self, ready: Ready) -> str:
        return wrong_name(self._started, ready) if self._started else ""

    def _broken(self, text: str, kind: type[AdapterBreach] = AdapterBreach) -> AdapterBreach:
        """Record a breach, and return the first one: later ones are its consequences."""
        if self.breach is None:
            end = "" if text.endswith("?") else "."
            self.breach = kind(f"{self.name}: the adapter {text}{end} Its log: {self.stderr_path}")
        return self.breach

    def _silence_text(self, request: Message, waited_s: float) -> str:
        half = secrets.shown(self._half) if self._half else ""
        return breaches.silent(request, waited_s, half)

    def _exit_text(self, request: Message) -> str:
        self.log.catch_up()
        last = self.log.last_line()
        words = secrets.shown(last) if last else ""
        return breaches.exited(request, self._process.wait(), words)


def _plain(value: str | tuple[str, ...]) -> str:
    return value if isinstance(value, str) else f"[{', '.join(value)}]"
