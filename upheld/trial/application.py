"""One program in one mode, on topics of its own: what a scenario runs instances of."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from upheld.generators.ledger import Send, facts
from upheld.generators.tables import Tables
from upheld.history import events
from upheld.injectors.clock import WallClock
from upheld.kafka.consumers import Position
from upheld.programs import DEAD_LETTERS, Program
from upheld.protocol.messages import Mode
from upheld.stores import Store
from upheld.supervisor.instance import Instance


@dataclass
class Application:
    """One program in one mode, on topics of its own."""

    name: str
    program: Program
    event: events.Application
    partitions: int  # of the outputs
    inputs: dict[str, int]  # topic -> partitions
    directory: Path
    several: bool = False  # whether instances are to run beside each other
    workers: int = 0  # how many processes share the work of an instance; 0: as it likes
    through_proxy: bool = False  # whether its instances reach the broker through the proxy
    doors: set[str] = field(default_factory=set)  # of those that did
    group: str | None = None
    running: dict[str, Instance] = field(default_factory=dict)
    fed_ms: int = 0
    fed: set[str] = field(default_factory=set)  # the topics that the last wave was for
    is_fed: bool = False  # all the time, by a thread of its own
    observed_ms: int | None = (
        None  # from the first feeding until it is drained: when its outputs were looked for
    )
    blind_ms: int | None = None  # and how long they were not, at most
    # topic-partition -> each wave's end, and when it was there
    appended: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    wave: Callable[..., Sequence[Send]] | None = None
    count: Callable[[tuple[Send, ...]], dict[str, int]] = facts
    incarnations: Counter[str] = field(default_factory=Counter)  # how often a topic was made anew
    waves: int = 0
    ready_ms: int = 0
    positions: dict[tuple[str, bool], Position] = field(default_factory=dict)
    # topic-partition -> the offset after its last visible record
    input_ends: dict[str, int] = field(default_factory=dict)
    workload: dict[str, int] = field(default_factory=dict)
    tables: Tables | None = None  # of a join: what its inputs say
    table: str | None = None  # the topic that is the table, where that is one of the design's own
    keys: list[str] = field(default_factory=list)  # what it is asked for
    asked: int = 0
    lag_due_ms: int | None = None  # when it is asked again how far it is behind, if it is
    store: Store | None = None  # what keeps its state, where that is not its own affair
    wall_clock: WallClock | None = None  # what its instances are started with, if theirs can be set

    @property
    def kept(self) -> Path:
        """Where a copy of its disks may be."""
        return self.directory.with_name(f"{self.directory.name}-kept")

    def door(self, name: str = "a") -> str:
        """What the proxy knows an instance by."""
        return f"{self.event.application_id}/{name}"

    def since(self, topic: str, now_ms: int) -> Callable[[int, int], int]:
        """Return what says when the wave of a record was in the log, by partition and offset: now,
        where it was none of ours, or ends in aborted records."""
        ends = dict[int, list[int]]()
        times = dict[int, list[int]]()

        def since(partition: int, offset: int) -> int:
            if partition not in ends:
                waves = self.appended.get(f"{topic}-{partition}", [])
                ends[partition] = [end for end, _ in waves]
                times[partition] = [*(at_ms for _, at_ms in waves), now_ms]
            return times[partition][bisect_right(ends[partition], offset)]

        return since

    @property
    def reads(self) -> str:
        """The input topic, of a join the one whose keys the results have."""
        return self.event.topics[self.program.reads]

    @property
    def writes(self) -> str:
        """The output topic."""
        return self.table or self.event.topics[self.program.writes]

    @property
    def outputs(self) -> tuple[str, ...]:
        """The output topics of all its stages, the last one's first, and that of its dead
        letters.
        """
        roles = [*(stage.writes for stage in self.program.stages[1:]), DEAD_LETTERS]
        return self.writes, *(
            self.event.topics[role] for role in roles if role in self.event.topics
        )

    @property
    def commits(self) -> dict[str, int]:
        """The inputs whose committed offsets say how far the application is: topic ->
        partitions.
        """
        return {
            topic: self.inputs[topic]
            for topic in map(self.event.topics.__getitem__, self.program.commits)
        }

    @property
    def places(self) -> list[str]:
        """Every topic-partition of those inputs, sorted."""
        return sorted(f"{topic}-{p}" for topic, count in self.commits.items() for p in range(count))

    @property
    def mode(self) -> Mode:
        """At_least_once or exactly_once."""
        return self.event.mode
