"""One attempt on a rig where nothing is real; time passes by sleeps alone."""

from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import pytest

from upheld.history import History
from upheld.kafka.groups import Session
from upheld.programs import PROGRAMS
from upheld.protocol.manifest import Manifest
from upheld.protocol.messages import Failed, Message, Ready
from upheld.supervisor.instance import Noticed
from upheld.trial import recorder, waits
from upheld.trial.application import Application
from upheld.trial.deployment import Declaration, Deployments
from upheld.trial.recorder import Recorder

PROGRESS_S = 2.0


class Time:
    """A clock of which a sleep moves the hands."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        """Return the seconds."""
        return self.now_s

    def sleep(self, seconds: float) -> None:
        """Let the seconds pass."""
        self.now_s += seconds


class FakeInstance:
    """An instance that answers what a test has written, and that a test can end."""

    def __init__(self, *replies: Message) -> None:
        self.name = "design-1"
        self.stderr_path = Path("design-1.txt")
        self.log = SimpleNamespace(size=0)
        self.replies = list(replies)
        self.asked: list[Any] = []
        self.failed: Failed | None = None
        self.notices: SimpleQueue[Noticed] = SimpleQueue()
        self.exit_code: int | None = None
        self.boot_s = 1.0
        self.manifest: Any = SimpleNamespace(capabilities=())

    @property
    def is_over(self) -> bool:
        """Whether it has failed or exited."""
        return self.failed is not None or self.exit_code is not None

    def reply(self, *asked: object) -> Message:
        """Answer; the last answer stays."""
        self.asked.append(asked)
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    def start(self, request: object) -> Message:
        """Answer a start."""
        return self.reply("start", request)

    def stop(self, deadline_ms: int) -> Message:
        """Answer a stop."""
        return self.reply("stop", deadline_ms)

    def query(self, table: str, key: str) -> Message:
        """Answer a query."""
        return self.reply("query", table, key)

    def check(self) -> None:
        """Find the protocol kept."""

    def pids(self) -> list[int]:
        """Return no process, so that none is looked at."""
        return []

    def kill(self) -> list[int]:
        """Return the processes that died."""
        return [1, 2]


class FakeGroups:
    """The groups of a broker, of which all have one session."""

    def __init__(self) -> None:
        self.has: Session | None = Session("classic", 0, 0)
        self.obeys = True

    def session(self, _: str) -> Session | None:
        """Return the session; None while it is not known."""
        return self.has

    def set_session(self, _: str, session: Session) -> None:
        """Set the session, unless the broker does not obey."""
        if self.obeys:
            self.has = session


class Attempt:
    """The recorder, the rig and one application of an attempt."""

    def __init__(self, folder: Path) -> None:
        self.history = History()
        self.recorder = Recorder(self.history, time_scale=1.0)
        self.created: list[Any] = []
        self.partitions = {"changelog": 8}  # of topics that the design has made
        self.given_back: list[Any] = []
        self.groups = FakeGroups()
        self.instance = FakeInstance(Ready(consumer_group="group"))
        self.starts_s: list[float] = []  # as they were measured
        self.manifest = self.manifest_with()
        pool = SimpleNamespace(give_back=self.given_back.append, rest=lambda: None)
        reading = SimpleNamespace(
            create=lambda topics, **cleanup: self.created.append((topics, cleanup)),
            partitions=lambda topic, _within_s: self.partitions.get(topic, 0),
            canary_ms=lambda: 3,
            groups=self.groups,
        )
        self.rig: Any = SimpleNamespace(
            log_name=lambda path: path.name,
            run=SimpleNamespace(scratch=folder),
            broker=SimpleNamespace(bootstrap="broker:9092", client={}),
            client_of=lambda _: {},
            security_of=lambda _: None,
            reading=reading,
            stores={},
            time_scale=1.0,
            progress_s=PROGRESS_S,
            session_timeout_ms=2_000,
            pool=lambda _: pool,
            take=lambda *_: self.instance,
            measured=lambda _, start_s: self.starts_s.append(start_s),
            start_s=lambda _: max(self.starts_s),
        )

    def manifest_with(self, *capabilities: str) -> Manifest:
        """Return the manifest of a design with these capabilities."""
        self.manifest = Manifest(
            folder=Path(),
            name="design",
            version="1",
            command=("true",),
            programs=tuple(PROGRAMS),
            modes=("exactly_once",),
            capabilities=capabilities,
        )
        self.instance.manifest = self.manifest
        return self.manifest

    def application(self, program: str = "relay", **said: Any) -> Application:
        """Declare an application on two partitions."""
        deployments = Deployments(self.recorder, self.rig, self.manifest, "trial")
        return Application(deployments.declare(Declaration(program, "exactly_once", 2, **said)))


def timeless(folder: Path, patch: pytest.MonkeyPatch) -> Attempt:
    """Return an attempt in which time passes by sleeps alone."""
    clock = Time()
    patch.setattr(recorder, "time", clock)
    patch.setattr(waits, "time", clock)
    return Attempt(folder)
