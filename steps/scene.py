"""The scene of an attempt: its deployment, and the acts that are under way.

The Given lines only describe. The applications are declared when something is first done with
them, as the description stands then.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any, Final

import pytest
from pytest_bdd.parser import Step

from upheld.injectors.proxy.rules import Rule
from upheld.judging.claims import claim_of
from upheld.nemesis import disks
from upheld.protocol.messages import GroupProtocol, Mode
from upheld.spec.gherkin import THROUGH_PROXY
from upheld.trial.application import Application
from upheld.trial.deployment import Declaration
from upheld.trial.trial import Trial
from upheld.verdicts import HarnessError

APPLICATION: Final = "the application"
SECOND: Final = "the second application"
RELAY: Final = "the relay"
UPSTREAM: Final = "upstream"
APART_S: Final = 0.2  # between the small waves that arrive while something is done
PARTITIONS: Final = 4  # of an input, if its configuration does not say


class Restarts(Enum):
    """When a supervisor starts the application again by itself."""

    BY_LINES = auto()  # where a line says so
    AFTER_LOUD_STOP = auto()
    UNLESS_IT_REFUSES = auto()  # after a loud stop, and it may refuse to start again
    AFTER_DEATH = auto()
    AFTER_DEATH_ON_EMPTY_DISK = auto()
    NEVER = auto()


@dataclass(frozen=True)
class Deployment:
    """The description of the application by the Given lines."""

    program: str = ""
    mode: Mode = "at_least_once"
    partitions: int = PARTITIONS
    second_partitions: int = 0  # of the second input; 0: as many as the first
    transaction_timeout_ms: int = 0  # 0: as usual
    session_timeout_ms: int = 0  # 0: as usual
    group_protocol: GroupProtocol | None = None  # None: as usual
    outlives_start: bool = False  # a transaction lasts twice as long as a start
    parameters: Mapping[str, int | str] = field(default_factory=dict)
    disk_mb: int = 0  # 0: the disk of this machine
    is_rolled: bool = False  # whether its table is kept in segments of a second
    is_several: bool = False
    workers: int = 0
    in_clusters: bool = False
    reports_lag: bool = False
    has_dead_letters: bool = False
    has_settable_clock: bool = False
    relay_mode: Mode | None = None
    second_mode: Mode | None = None
    has_empty_partition: bool = False
    has_unreadable_records: bool = False
    restarts: Restarts = Restarts.BY_LINES


class Arrivals:
    """Small waves that arrive from one line of a scenario until another one."""

    def __init__(self) -> None:
        self.feeding = ExitStack()
        self.afterwards: list[Callable[[], None]] = []
        self.saw_outage = False  # of the store


class Scene:
    """The memory of one attempt between the lines of its scenario."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.deployment = Deployment()
        self.sentence = ""  # the line that is being run
        self.arrivals: Arrivals | None = None
        # Application and request -> the request that is on its way.
        self.delayed: dict[tuple[str, str], Rule] = {}
        self.refused: set[str] = set()  # the applications that refused to start
        self.clock_jumped = False

    def describe(self, **said: Any) -> None:
        """Add what a Given line says."""
        if self.trial.applications:
            raise HarnessError(f"“{self.sentence}” comes too late: the application has been used")
        self.deployment = replace(self.deployment, **said)

    def demand_mode(self, mode: str) -> None:
        """Refuse a sentence that speaks of another mode than the application's.

        Raises:
            HarnessError: The mode is another one.
        """
        if mode != self.deployment.mode:
            raise HarnessError(f"“{self.sentence}”: the mode is {self.deployment.mode}")

    def subjects(self, actor: str = "") -> list[Application]:
        """Return the applications that an actor stands for, which are declared by now.

        Without an actor they are those that are judged: all but the relay upstream.
        """
        known = self.trial.applications
        if not known:
            self._declare()
        judged = [each for name, each in known.items() if name != UPSTREAM]
        if actor == RELAY:
            return [known[UPSTREAM]]
        if actor == APPLICATION:
            return judged[:1]
        return judged[1:] if actor == SECOND else judged

    def _declare(self) -> None:
        trial = self.trial
        said = self.deployment
        if said.is_several or said.in_clusters:
            trial.rig.pool(trial.manifest).prepare()
        if said.relay_mode:
            relay = Declaration("relay", said.relay_mode, said.partitions, name=UPSTREAM)
            trial.declare(relay)
        application = trial.declare(
            Declaration(
                said.program,
                said.mode,
                said.partitions,
                beside=said.second_partitions,
                upstream=UPSTREAM if said.relay_mode else "",
                timeout_ms=said.transaction_timeout_ms,
                outlives_start=said.outlives_start,
                parameters=dict(said.parameters),
                rolls=said.is_rolled,
                has_dead_letters=said.has_dead_letters,
            )
        )
        application.several = said.is_several
        application.group_protocol = said.group_protocol
        application.workers = said.workers
        application.session_timeout_ms = said.session_timeout_ms
        application.through_proxy = THROUGH_PROXY in trial.tags
        application.lag_due_ms = 0 if said.reports_lag else None
        if said.disk_mb:
            disks.mount(application.disks, said.disk_mb)
        if said.second_mode:
            name = f"{application.name}-{said.second_mode}"
            second = Declaration(said.program, said.second_mode, said.partitions, name=name)
            trial.declare(second)

    def begin_arrivals(self, apart_s: float = APART_S) -> None:
        """Let small waves of the last workload arrive from now on."""
        if self.arrivals:
            raise HarnessError(f"“{self.sentence}”: records are arriving already")
        self.arrivals = Arrivals()
        for application in self.subjects():
            self.arrivals.feeding.enter_context(self.trial.workload.feeding(application, apart_s))

    def end_arrivals(self) -> None:
        """End the waves, and do what had to wait until nothing arrives."""
        if not self.arrivals:
            raise HarnessError(f"“{self.sentence}”: nothing is arriving")
        ended = self.arrivals
        ended.feeding.close()
        self.arrivals = None
        for act in ended.afterwards:
            act()

    def when_nothing_arrives(self, act: Callable[[], None]) -> None:
        """Do something at once, or as soon as the arrivals end."""
        if self.arrivals:
            self.arrivals.afterwards.append(act)
        else:
            act()

    def claim(self, **arguments: Any) -> None:
        """Judge the line that is being run, of each application, by the table of claims."""
        for application in self.subjects():
            self.claim_of(application, **arguments)

    def claim_of(self, application: Application, **arguments: Any) -> None:
        """Judge the line that is being run, of one application."""
        claim = claim_of(self.sentence)
        assert claim
        self.trial.claim(claim.check, application, self.sentence, **arguments)

    def close(self) -> None:
        """End the arrivals of an attempt that ended early; read nothing more."""
        if self.arrivals:
            ended = HarnessError("the attempt ended while records were arriving")
            self.arrivals.feeding.__exit__(type(ended), ended, None)
            self.arrivals = None


@pytest.fixture
def scene(trial: Trial) -> Iterator[Scene]:
    """Yield the scene that the lines of one attempt share."""
    made = Scene(trial)
    yield made
    made.close()


def pytest_bdd_before_step(request: pytest.FixtureRequest, step: Step) -> None:
    """Note the line that is being run."""
    request.getfixturevalue("scene").sentence = step.name
