"""One running instance of a design: spawned, asked, watched and, where a fault wants it, taken down
whole.

Every exchange has a deadline, and every way of breaking the protocol ends in one `AdapterBreach`
that says what was seen, what was expected and where the log lies. A breach sticks: whatever is
asked next meets the same one, because the answers of an adapter that got out of step belong to
nobody.
"""

import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from pydantic import ValidationError

from upheld.errors import UsageProblem
from upheld.protocol.manifest import Manifest
from upheld.protocol.messages import (
    PROTOCOL_VERSION,
    REPLIES_TO,
    REPLY,
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
    Query,
    Ready,
    StandingBy,
    Start,
    Stop,
    Stopped,
    Unsupported,
    Workers,
)
from upheld.supervisor.session import INSTANCE_TAG, Session
from upheld.verdicts import AdapterBreach

PREPARE_S = 600.0
HELLO_S = 60.0
START_S = 60.0
QUERY_S = 5.0
MEASURE_S = 30.0
STOP_GRACE_S = 5.0
MAX_LINE_BYTES = 1 << 20
MAX_UNASKED_LINES = 1000
_SHOWN_CHARS = 160
_DRAIN_S = 2.0  # at most: what an instance wrote before it exited is still to be read
_LOOK_S = 0.05  # how often an exit is looked for while an answer is awaited
_ONE_LINE = "Expected one JSON object a line; was it meant for stderr?"
_SECRET = re.compile(r"password|secret|token|key\.pem", re.IGNORECASE)
_serial = itertools.count(1)


class Scope(Protocol):
    """What an instance needs of a run: the environment by which the reaper knows its processes."""

    @property
    def environment(self) -> dict[str, str]:
        """Variables to be merged into every child's environment."""


class Silence(AdapterBreach):
    """No answer: the deadline passed, or the process ended first.

    After a fault the design answers for it.
    """


def prepare(manifest: Manifest, run: Scope, log_dir: Path) -> None:
    """Run a design's `prepare` to its end, if it has one; UsageProblem where it fails or takes too
    long.
    """
    if not manifest.prepare:
        return
    log_dir.mkdir(parents=True, exist_ok=True)
    log = log_dir / f"{_file_name(manifest.name)}-prepare.txt"
    with log.open("wb") as output:
        try:
            code = subprocess.run(
                manifest.prepare,
                cwd=manifest.folder,
                env=_environment(manifest, run),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                timeout=PREPARE_S,
                check=False,
            ).returncode
            end = f"ended with exit code {code}" if code else ""
        except subprocess.TimeoutExpired:
            end = f"did not end within {PREPARE_S:.0f} s"
        except OSError as error:
            end = f"cannot be run ({error.strerror})"
    if end:
        raise UsageProblem(f"{manifest.file}: `prepare` {end}; {log} says why.")


class Instance:
    """One process session of a design; construct it, `greet()`, then `start(…)`."""

    def __init__(  # noqa: PLR0913 (all but what every instance has are by name)
        self,
        manifest: Manifest,
        run: Scope,
        log_dir: Path,
        *,
        name: str | None = None,
        time_scale: float = 1.0,
        environment: dict[str, str] | None = None,
        launch: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen,
    ) -> None:
        self.manifest = manifest
        self.environment = environment or {}  # what it has beyond the others of its design
        self.name = name or f"{_file_name(manifest.name)}-{next(_serial)}"
        self.time_scale = time_scale
        self.hello: HelloReply | None = None
        self.failed: Failed | None = None
        self.breach: AdapterBreach | None = None
        self.survivors: list[int] = []
        self.stderr_path = log_dir / f"{self.name}.stderr"
        self._heard = threading.Condition()
        self._asked: Message | None = None
        self._answer: Message | None = None
        self._half = b""
        self._unasked = 0
        self._is_free = True  # of a start
        self._gone = False
        self._secrets: set[str] = set()  # as they are, and as JSON writes them
        tag = uuid.uuid4().hex
        log_dir.mkdir(parents=True, exist_ok=True)
        with self.stderr_path.open("wb") as stderr:
            try:
                self._process = launch(
                    manifest.command,
                    cwd=manifest.folder,
                    env=_environment(manifest, run) | self.environment | {INSTANCE_TAG: tag},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    start_new_session=True,
                )
            except OSError as error:
                raise AdapterBreach(
                    f"{self.name}: {manifest.command[0]} cannot be run ({error.strerror}); "
                    f"see `command` in {manifest.file}."
                ) from None
        self._session = Session.of(self._process.pid, tag)
        self._listener = threading.Thread(
            target=self._listen, name=f"listen {self.name}", daemon=True
        )
        self._listener.start()

    # --- the protocol

    def greet(self) -> HelloReply:
        """Ask `hello`, and hold the answer against the manifest."""
        reply = self.ask(Hello(), HELLO_S)
        if isinstance(reply, Failed):
            raise self._broken(
                f"failed at hello: {reply.kind}, {reply.message}. Expected an answer to hello"
            )
        assert isinstance(reply, HelloReply)
        if reply.protocol != PROTOCOL_VERSION:
            raise self._broken(
                f"speaks protocol {reply.protocol}. Expected protocol {PROTOCOL_VERSION}"
            )
        for field in ("name", "version", "programs", "modes", "capabilities"):
            said, declared = getattr(reply, field), getattr(self.manifest, field)
            if (said != declared) if isinstance(said, str) else (set(said) != set(declared)):
                raise self._broken(
                    f"says {field} {_plain(said)} at hello, and {self.manifest.file} declares "
                    f"{_plain(declared)}. Expected the two to agree"
                )
        self.hello = reply
        return reply

    def start(self, request: Start) -> Ready | StandingBy | Unsupported | Error | Failed:
        """Run a program, and return when the instance holds its input."""
        secrets = [value for key, value in request.client.items() if _SECRET.search(key)]
        for value in filter(
            None, (*secrets, *(urlsplit(address).password for address in request.stores.values()))
        ):
            self._secrets |= {
                value,
                json.dumps(value)[1:-1],
                json.dumps(value, ensure_ascii=False)[1:-1],
            }
        self._is_free = False
        reply = self.ask(request, START_S)
        assert isinstance(reply, Ready | StandingBy | Unsupported | Error | Failed)
        return reply

    def query(self, table: str, key: str) -> Message:
        """Read one key of a table."""
        return self.ask(Query(table=table, key=key), QUERY_S)

    def lag(self) -> Message:
        """Ask how far it is behind."""
        return self.ask(Lag(), QUERY_S)

    def workers(self) -> Message:
        """Ask which processes share its work."""
        return self.ask(Workers(), QUERY_S)

    def activate(self, after: dict[str, int]) -> Message:
        """Let one that stands by take over from these positions."""
        return self.ask(Activate(after=after), START_S)

    def deactivate(self) -> Message:
        """Have it finish and hand over."""
        return self.ask(Deactivate(), START_S)

    def measure(self) -> Measured | Error | Failed:
        """Ask how much state it holds; its capabilities say whether it can tell."""
        reply = self.ask(Measure(), MEASURE_S)
        assert isinstance(reply, Measured | Error | Failed)
        return reply

    def stop(self, deadline_ms: int) -> Stopped | Error | Failed:
        """Close gracefully.

        One that is not reusable exits; what it leaves behind is killed and listed.
        """
        until = time.monotonic() + (deadline_ms / 1000 + STOP_GRACE_S) * self.time_scale
        reply = self.ask(Stop(deadline_ms=deadline_ms), deadline_ms / 1000 + STOP_GRACE_S)
        assert isinstance(reply, Stopped | Error | Failed)
        if isinstance(reply, Stopped) and "reusable" not in self.manifest.capabilities:
            self._hang_up()
            if self.wait_exit(max(0.0, until - time.monotonic())) is None:
                raise self._broken(
                    "answered stopped and still runs. Expected it to exit, or `reusable` among "
                    "its capabilities",
                    Silence,
                )
            self.survivors = self.kill()
        return reply

    def ask(self, request: Message, deadline_s: float) -> Message:
        """One request, exactly one reply of a type that it allows, within the deadline, scaled."""
        until = time.monotonic() + deadline_s * self.time_scale
        with self._heard:
            self.check()
            if self.failed:
                return self.failed
            self._asked, self._answer = request, None
        with contextlib.suppress(OSError, ValueError):  # then it has exited, which is noticed below
            assert self._process.stdin
            self._process.stdin.write(request.model_dump_json(exclude_none=True).encode() + b"\n")
            self._process.stdin.flush()
        with self._heard:
            while self._answer is None and self.failed is None:
                self.check()
                if self._process.poll() is not None:
                    self._heard.wait_for(
                        lambda: self._settled or not self._listener.is_alive(), _DRAIN_S
                    )
                    if not self._settled:
                        raise self._broken(self._exit_text(request), Silence)
                elif (left := until - time.monotonic()) <= 0:
                    raise self._broken(
                        self._silence_text(request, deadline_s * self.time_scale), Silence
                    )
                else:
                    self._heard.wait(min(left, _LOOK_S))
            reply = self._answer or self.failed
            assert reply
            return reply

    def check(self) -> None:
        """Raise the breach that this instance has committed, if any, asked or not."""
        if self.breach:
            raise self.breach

    # --- the processes

    @property
    def exit_code(self) -> int | None:
        """How its first process ended (negative: by that signal), once its last words are heard;
        None while it runs.
        """
        if (code := self._process.poll()) is not None:
            self._listener.join(_DRAIN_S)
        return code

    def wait_exit(self, deadline_s: float) -> int | None:
        """Wait for its first process to end, as it must after `failed`, and for its last words;
        None where it did not end.
        """
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(deadline_s)
        return self.exit_code

    @property
    def is_over(self) -> bool:
        """Whether it works no more: it has said why, or has ended."""
        return self.failed is not None or self.exit_code is not None

    def takes_another_start(self) -> bool:
        """Whether it has let go of its last start, by a stop or loudly, and is as good as new; then
        a loud stop is forgotten.
        """
        if "reusable" not in self.manifest.capabilities or self.exit_code is not None:
            return False
        with self._heard:
            if self.breach or self.environment or self._asked or not self._is_free:
                return False
            self.failed = None
            return True

    def pids(self) -> list[int]:
        """Every living process of the instance."""
        return [] if self._gone else self._session.pids()

    def pause(self) -> list[int]:
        """Stop every process; the returned ids are the evidence."""
        return [] if self._gone else self._session.pause()

    def resume(self) -> list[int]:
        """Let a paused instance go on."""
        return [] if self._gone else self._session.resume()

    def step(self, seconds: float) -> None:
        """Let a paused instance go on for a moment."""
        if not self._gone:
            self._session.step(seconds)

    def kill(self) -> list[int]:
        """Kill every process, paused or not, and reap; the returned ids are the evidence."""
        if self._gone:
            return []
        taken = self._session.kill()
        self._gone = True  # the kernel may give these numbers to strangers from here on
        self._process.wait()
        self._hang_up()
        self._listener.join(_DRAIN_S)
        self._clean_log()
        return taken

    def _clean_log(self) -> None:
        """Take out of its log what must not be shown: a design may have logged the request that it
        was given.
        """
        if not self._secrets:
            return
        clean = self.stderr_path.with_suffix(".clean")
        try:
            with self.stderr_path.open("rb") as log, clean.open("wb") as kept:
                kept.writelines(self._masked(line) for line in log)
            clean.replace(self.stderr_path)
        except OSError:  # no room for a copy: then rather no log
            with contextlib.suppress(OSError):
                clean.unlink(missing_ok=True)
                os.truncate(self.stderr_path, 0)

    def _masked(self, line: bytes) -> bytes:
        for secret in self._secrets:
            line = line.replace(secret.encode(), b"***")
        return line

    def _hang_up(self) -> None:
        with contextlib.suppress(OSError):
            assert self._process.stdin
            self._process.stdin.close()

    # --- listening, on a thread of its own

    @property
    def _settled(self) -> bool:
        return bool(self._answer or self.failed or self.breach)

    def _listen(self) -> None:
        """Take in what the instance says; one that floods is read no more: the pipe holds it
        still.
        """
        assert self._process.stdout
        with self._process.stdout as stdout:
            while chunk := os.read(stdout.fileno(), 1 << 16):
                *lines, self._half = (self._half + chunk).split(b"\n")
                with self._heard:
                    for line in lines:
                        self._hear(line)
                    if len(self._half) > MAX_LINE_BYTES:
                        self._broken(
                            f"wrote a line of more than {MAX_LINE_BYTES} bytes to stdout: "
                            f"{self._shown(self._half)}. {_ONE_LINE}"
                        )
                    self._heard.notify_all()
                if len(self._half) > MAX_LINE_BYTES or self._unasked > MAX_UNASKED_LINES:
                    self._hold_still()
                    return
        with self._heard:
            self._heard.notify_all()

    def _hold_still(self) -> None:
        """Keep the pipe open, unread, until the process ends: closed, it would turn a flood into a
        crash.
        """
        self._process.wait()

    def _hear(self, line: bytes) -> None:
        """Sort one line: the answer that is awaited, a loud stop, or a breach."""
        # An error may quote the settings, and its message is kept in the history.
        line = self._masked(line)
        try:
            message = REPLY.validate_json(line)
        except ValidationError as error:
            self._unasked += 1
            if not self.breach:
                self._broken(self._garbled_text(line, error))
            return
        if isinstance(message, Failed):
            self.failed = self.failed or message
            self._is_free = message.again
            # That is the answer; any other request has one of its own.
            if isinstance(self._asked, Start | Activate):
                self._asked = None
        elif self._asked is None:
            self._unasked += 1
            if self._unasked > MAX_UNASKED_LINES or not self.breach:
                self._broken(
                    f"said {self._shown(line)} though nothing was asked. "
                    "Expected one answer to each request, and nothing unasked but failed"
                )
        elif not isinstance(message, REPLIES_TO[type(self._asked)]):
            self._broken(
                f"answered {_type(self._asked)} with {self._shown(line)}. {_expected(self._asked)}"
            )
        else:
            self._is_free = self._is_free or isinstance(message, Stopped)
            self._asked, self._answer = None, message

    # --- what a breach says

    def _broken(self, text: str, kind: type[AdapterBreach] = AdapterBreach) -> AdapterBreach:
        """Record a breach; the first one stands, since what follows it is its consequence."""
        if self.breach is None:
            end = "" if text.endswith("?") else "."
            self.breach = kind(f"{self.name}: the adapter {text}{end} Its log: {self.stderr_path}")
        return self.breach

    def _garbled_text(self, line: bytes, error: ValidationError) -> str:
        asked = f"answered {_type(self._asked)} with" if self._asked else "said, unasked,"
        try:
            json.loads(line)
        except ValueError:
            return f"{asked} a line that is not JSON: {self._shown(line)}. {_ONE_LINE}"
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"][1:])
        why = f"field {field}: {first['msg']}" if field else first["msg"]
        what = f"{asked} {self._shown(line)}, which is no message of the protocol ({why})"
        return f"{what}. {_expected(self._asked)}"

    def _silence_text(self, request: Message, waited_s: float) -> str:
        if self._half:
            return (
                f"answered {_type(request)} with half a line, {self._shown(self._half)}, "
                f"and then nothing for {waited_s:g} s. Expected every answer to end with a "
                "newline, flushed"
            )
        return f"did not answer {_type(request)} within {waited_s:g} s. {_expected(request)}"

    def _exit_text(self, request: Message) -> str:
        code = self._process.returncode
        how = f"died of {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
        words = self._last_words()
        return f"{how} before it answered {_type(request)}{words}. {_expected(request)}"

    def _last_words(self) -> str:
        """The last line of its log, which mostly says why it died."""
        with contextlib.suppress(OSError), self.stderr_path.open("rb") as file:
            file.seek(max(0, self.stderr_path.stat().st_size - 4096))
            lines = [line for line in file.read().splitlines() if line.strip()]
            if lines:
                return f"; its last words were {self._shown(lines[-1].strip())}"
        return ""

    def _shown(self, line: bytes) -> str:
        """A line as a message may show it: shortened, and without what must not be shown."""
        text = self._masked(line[: 4 * _SHOWN_CHARS]).decode(errors="replace")
        return repr(text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…")


def _type(message: Message | type[Message]) -> str:
    """The name of a message on the wire."""
    return str(message.__pydantic_fields__["type"].default)


def _expected(request: Message | None) -> str:
    if request is None:
        return "Expected nothing unasked but failed"
    return f"Expected {', '.join(_type(reply) for reply in REPLIES_TO[type(request)])} or failed"


def _environment(manifest: Manifest, run: Scope) -> dict[str, str]:
    """What every process of a design is given: the user's variables, but not those that are meant
    for our pytest.
    """
    own = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    return own | manifest.environment | run.environment


def _file_name(design: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", design)


def _plain(value: str | tuple[str, ...]) -> str:
    return value if isinstance(value, str) else f"[{', '.join(value)}]"
