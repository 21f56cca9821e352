"""One application of an attempt: its deployment, its input and its instances."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from upheld.generators.ledger import Send, facts
from upheld.generators.tables import Tables
from upheld.history import events
from upheld.injectors.clock import WallClock
from upheld.injectors.proxy.timeouts import Timeout
from upheld.kafka.consumers import Position
from upheld.programs import DEAD_LETTERS, Program
from upheld.protocol.messages import GroupProtocol, Mode, OffsetsMean
from upheld.stores import Store
from upheld.supervisor.folders import Folder
from upheld.supervisor.instance import Instance
from upheld.trial.deployment import PROMPT_MS, Deployment

Wave = Callable[..., Sequence[Send]]  # called with wave=its number
Count = Callable[[tuple[Send, ...]], dict[str, int]]


@dataclass
class Input:
    """The input of an application: the waves written to it, and the ends of its logs."""

    wave: Wave | None = None  # makes the records of the next wave
    count: Count = facts  # counts what a wave adds to the totals
    waves: int = 0  # how many were written
    totals: dict[str, int] = field(default_factory=dict)
    fed_ms: int = 0  # when the last wave was written
    topics: set[str] = field(default_factory=set)  # of the last wave
    is_fed: bool = False  # all the time, by a thread of its own
    # topic-partition -> each wave's end, and when it was there
    appended: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    # topic-partition -> the offset after its last visible record
    ends: dict[str, int] = field(default_factory=dict)
    read: Counter[str] = field(default_factory=Counter)  # topic-partition -> records, aborted too
    incarnations: Counter[str] = field(default_factory=Counter)  # how often a topic was made anew

    def appended_ms(self, topic: str, now_ms: int) -> Callable[[int, int], int]:
        """Return a function from partition and offset to when that record was in the log.

        It is the time of the record's wave. It is `now_ms` if the harness did not write the record,
        and for aborted records at the end of a log.
        """
        ends = dict[int, list[int]]()
        times = dict[int, list[int]]()

        def since(partition: int, offset: int) -> int:
            if partition not in ends:
                waves = self.appended.get(f"{topic}-{partition}", [])
                ends[partition] = [end for end, _ in waves]
                times[partition] = [*(at_ms for _, at_ms in waves), now_ms]
            return times[partition][bisect_right(ends[partition], offset)]

        return since


@dataclass
class Sight:
    """How far the topics of an application were read, and when."""

    positions: dict[tuple[str, bool], Position] = field(default_factory=dict)
    # When the outputs were read last; None but from the first feeding until the input is drained.
    observed_ms: int | None = None
    blind_ms: int | None = None  # the longest time between two looks at them


@dataclass
class Application:
    """One program in one mode, on topics of its own, and the instances that run it."""

    deployment: Deployment
    progress: OffsetsMean = "group"  # what the offsets of its group say
    partitions: int = field(init=False)  # of the outputs
    inputs: dict[str, int] = field(init=False)  # topic -> partitions
    several: bool = False  # whether instances are to run beside each other
    group_protocol: GroupProtocol | None = None  # of its group, if not as usual
    workers: int = 0  # how many processes share the work of an instance; 0: the design chooses
    session_timeout_ms: int = 0  # of its members; 0: as usual
    # The timeouts that it asks for itself, as the broker got them, in milliseconds.
    timeouts: dict[Timeout, int] = field(default_factory=dict)
    through_proxy: bool = False  # whether its instances reach the broker through the proxy
    wall_clock: WallClock | None = None  # of its instances, if it can be set
    tables: Tables | None = None  # of a join: what its inputs say
    input: Input = field(default_factory=Input)
    sight: Sight = field(default_factory=Sight)
    running: dict[str, Instance] = field(default_factory=dict)
    is_supervised: bool = False  # whether an instance that stops loudly is started once more
    is_struck: bool = False  # whether a fault has begun, after which it may stop loudly
    stopped: list[str] = field(default_factory=list)  # the instances that are to be started again
    restarted: set[str] = field(default_factory=set)  # the instances that were, each once
    doors: set[str] = field(default_factory=set)  # instances that went through the proxy
    group: str | None = None  # that its instances are members of
    ready_ms: int = 0
    table: str | None = None  # the topic that is the table, if the design made it
    keys: list[str] = field(default_factory=list)  # that its table is asked for
    asked: int = 0  # how often it was asked for a key
    lag_due_ms: int | None = None  # when it is asked next how far it is behind, if ever

    def may_stop(self, name: str) -> bool:
        """Return whether an instance may stop loudly now.

        It may if its supervisor starts it once more.
        """
        return self.is_supervised and self.is_struck and name not in self.restarted

    def __post_init__(self) -> None:
        self.partitions = self.deployment.partitions
        self.inputs = dict(self.deployment.inputs)

    def position(self, topic: str, *, committed: bool) -> Position:
        """Return how far a topic was read under one isolation level; a read moves it on."""
        partitions = self.inputs.get(topic, self.partitions)
        start = dict.fromkeys(range(partitions), 0)
        return self.sight.positions.setdefault((topic, committed), start)

    def door(self, name: str = "a") -> str:
        """Return the name by which the proxy knows an instance."""
        return f"{self.event.application_id}/{name}"

    @property
    def name(self) -> str:
        """Return its name, which no other application of the attempt has."""
        return self.deployment.name

    @property
    def program(self) -> Program:
        """Return the program that it runs."""
        return self.deployment.program

    @property
    def event(self) -> events.Application:
        """Return the event that declares it in the history."""
        return self.deployment.event

    @property
    def progress_group(self) -> str | None:
        """Return the group whose committed offsets say that outputs are done to there.

        There is none if the design names no group, or keeps this truth elsewhere.
        """
        return self.group if self.progress == "group" else None

    @property
    def visible_ms(self) -> int:
        """Return after how many milliseconds at most an output follows its input.

        An application without an adapter says it of its output (`visible_within_ms`).
        """
        return int(self.event.parameters["commit_interval_ms"]) + PROMPT_MS

    @property
    def mode(self) -> Mode:
        """Return `at_least_once` or `exactly_once`."""
        return self.event.mode

    @property
    def store(self) -> Store | None:
        """Return the store that keeps its state, if the scenario names one."""
        return self.deployment.store

    @property
    def directory(self) -> Path:
        """Return the folder that holds its disks."""
        return self.deployment.directory

    @property
    def disks(self) -> Folder:
        """Return the same folder, for reads and changes by the harness."""
        return Folder(self.directory.parent, self.directory.name)

    @property
    def kept(self) -> Folder:
        """Return where a copy of its disks may be."""
        return Folder(self.directory.parent, f"{self.directory.name}-kept")

    @property
    def reads(self) -> str:
        """Return the input topic; of a join the one whose keys the results have."""
        return self.event.topics[self.program.reads]

    @property
    def writes(self) -> str:
        """Return the output topic."""
        return self.table or self.event.topics[self.program.writes]

    @property
    def results(self) -> tuple[str, ...]:
        """Return its output topics, the first one first, without those of earlier stages."""
        return self.writes, *(self.event.topics[role] for role in self.program.further)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return its output topics, then those of earlier stages and of dead letters."""
        roles = [*(stage.writes for stage in self.program.stages[1:]), DEAD_LETTERS]
        others = (self.event.topics[role] for role in roles if role in self.event.topics)
        return tuple(dict.fromkeys([*self.results, *others]))

    @property
    def commits(self) -> dict[str, int]:
        """Return the inputs whose offsets are committed: topic -> partitions."""
        return {
            topic: self.inputs[topic]
            for topic in map(self.event.topics.__getitem__, self.program.commits)
        }

    @property
    def places(self) -> list[str]:
        """Return every topic-partition of the inputs whose offsets are committed, sorted."""
        return sorted(f"{topic}-{p}" for topic, count in self.commits.items() for p in range(count))
