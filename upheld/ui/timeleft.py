"""The time left of a run: recorded durations, corrected by this machine's pace.

A run's rows are known beforehand, and about how long each takes elsewhere. A row works for a moment
and waits for the rest: for a session to end, for an interval. A slower machine, or a busy one,
makes the work longer and not the waits.

So the correction is the ratio of two sums over the rows that are done: seconds lost to seconds of
work. Lost are the seconds beyond the expected ones. A sum forgives the outlier that a single row
may be. At the start the correction is damped.
"""

import statistics
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from upheld.spec.durations import Durations

DAMPING = 0.03  # the share of a run's work that counts as done in the expected time
# A row that took more times the expected seconds (another attempt, say) counts as this.
MOST_TIMES = 4.0
LEAST_LEFT = 0.1  # the share of a row's estimate that is left, however long it has taken
MOST_GAINED = 0.9  # of a second of work: nothing takes no time at all


class RowKey(NamedTuple):
    """One row to be judged."""

    design: str
    row_id: str
    repetition: int


@dataclass
class Lost:
    """The seconds that rows took beyond the expected ones, and their seconds of work."""

    seconds: float = 0.0
    work_s: float = 0.0

    def add(self, seconds: float, work_s: float) -> None:
        """Count a row."""
        self.seconds += seconds
        self.work_s += work_s

    def pace(self, damping_s: float, prior: float) -> float:
        """Return the seconds lost for a second of work.

        Args:
            damping_s: The weight of the prior, in seconds of work.
            prior: The ratio that is assumed at first.
        """
        weight_s = self.work_s + damping_s
        return (self.seconds + prior * damping_s) / weight_s if weight_s else prior


@dataclass
class _UnderWay:
    key: RowKey
    expected_s: float
    began_s: float


class TimeLeft:
    """The estimate of one run; the run says when each row begins and ends."""

    def __init__(
        self, durations: Durations, lanes: int = 1, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.durations = durations
        self.lanes = lanes  # that still run
        self._clock = clock
        self._waiting: dict[RowKey, float] = {}  # -> expected seconds
        self._alone: dict[RowKey, float] = {}  # judged one by one after the others
        self._under_way: dict[int, _UnderWay] = {}  # by lane
        self._begun = set[tuple[int, str]]()  # lane and design: the design has booted there
        self._most_work_s: dict[str, float] = {}  # of a row, by design
        self._damping_s = 0.0
        self._machine = Lost()  # by rows of designs whose durations are known
        self._lost: dict[str, Lost] = {}  # by design
        self._lock = threading.RLock()  # the estimate is shown by another thread

    def begin(self, keys: Iterable[RowKey], alone: Collection[RowKey] = ()) -> None:
        """Take the rows that are to be judged.

        Args:
            keys: Rows that are judged in the lanes.
            alone: Rows that are judged one by one when the others are done.
        """
        with self._lock:
            self._waiting = {key: self._expected(key) for key in keys}
            self._alone = {key: self._expected(key) for key in alone}
            expected: defaultdict[str, list[float]] = defaultdict(list)
            for key, seconds in (self._waiting | self._alone).items():
                expected[key.design].append(seconds)
            self._most_work_s = {
                design: statistics.median(seconds)
                for design, seconds in expected.items()
                if self.durations.knows(design)
            }
            work_s = sum(
                self._work_s(design, each)
                for design, seconds in expected.items()
                for each in seconds
            )
            self._damping_s = DAMPING * work_s
            self._machine = Lost()
            self._lost = {design: Lost() for design in expected}

    def started(self, key: RowKey, lane: int = 1) -> None:
        """Take it that a row has begun."""
        with self._lock:
            self._waiting.pop(key, None)
            self._alone.pop(key, None)
            expected_s = self._expected(key)
            if (lane, key.design) not in self._begun:
                self._begun.add((lane, key.design))
                expected_s += self.durations.boot_seconds(key.design)
            self._under_way[lane] = _UnderWay(key, expected_s, self._clock())

    def finished(self, lane: int = 1) -> None:
        """Take it that the lane's row is done, with any result."""
        with self._lock:
            if row := self._under_way.pop(lane, None):
                design = row.key.design
                taken_s = min(self._clock() - row.began_s, MOST_TIMES * row.expected_s)
                work_s = self._work_s(design, row.expected_s)
                self._lost[design].add(taken_s - row.expected_s, work_s)
                if self.durations.knows(design):
                    self._machine.add(taken_s - row.expected_s, work_s)

    def postponed(self, lane: int = 1) -> None:
        """Take it that the lane's row proved nothing beside others.

        It is judged again, alone.
        """
        with self._lock:
            if row := self._under_way.get(lane):
                self.finished(lane)
                self._alone[row.key] = self._expected(row.key)

    def seconds(self) -> float:
        """Estimate the seconds until the last row is done."""
        with self._lock:
            return self._estimate()

    def _estimate(self) -> float:
        machine = self._machine.pace(self._damping_s, 0.0)
        paces = {design: lost.pace(self._damping_s, machine) for design, lost in self._lost.items()}

        def here(design: str, seconds: float) -> float:
            """Return the seconds here of work and waits that take so long elsewhere."""
            return seconds + max(-MOST_GAINED, paces[design]) * self._work_s(design, seconds)

        waiting = [here(key.design, seconds) for key, seconds in self._waiting.items()]
        alone = [here(key.design, seconds) for key, seconds in self._alone.items()]
        under_way = [
            self._left_of(row, here(row.key.design, row.expected_s))
            for row in self._under_way.values()
        ]
        boots_s = sum(
            count * here(design, self.durations.boot_seconds(design))
            for design, count in self._boots_left().items()
        )
        shared_s = (sum(waiting) + sum(under_way) + boots_s) / max(1, self.lanes)
        return max([shared_s, *waiting, *under_way]) + sum(alone)

    def _expected(self, key: RowKey) -> float:
        return self.durations.seconds(key.design, key.row_id)

    def _work_s(self, design: str, seconds: float) -> float:
        """Return the seconds of a row that are work: at most those of the median row.

        All of an unknown design's seconds are work: its rows were guessed from other designs' rows,
        so they are wrong by a factor.
        """
        return min(seconds, self._most_work_s.get(design, seconds))

    def _left_of(self, row: _UnderWay, seconds: float) -> float:
        """Return the seconds that are left of a row that takes so many."""
        return max(seconds - (self._clock() - row.began_s), LEAST_LEFT * seconds)

    def _boots_left(self) -> Counter[str]:
        """Count the boots to come, by design.

        Each design that has not begun boots once. The other idle lanes boot the next design.
        """
        begun = {design for _, design in self._begun}
        designs = list(dict.fromkeys(key.design for key in self._waiting))
        boots = Counter(design for design in designs if design not in begun)
        idle = self.lanes - len({lane for lane, _ in self._begun}) - boots.total()
        if designs and idle > 0:
            boots[designs[0]] += min(idle, len(self._waiting))
        return boots


class Mean:
    """The estimate if no durations are known.

    Each piece left takes as long as a piece that is done.
    """

    def __init__(self, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.total = total
        self._clock = clock
        self._began_s = clock()
        self._done = 0

    def finished(self) -> None:
        """Count one more piece that is done."""
        self._done += 1

    def skip(self, count: int) -> None:
        """Count so many pieces less."""
        self.total -= count

    def seconds(self) -> float | None:
        """Estimate the seconds until the last piece is done; None before the first."""
        if not self._done:
            return None
        return (self._clock() - self._began_s) / self._done * (self.total - self._done)


def as_text(seconds: float) -> str:
    """Return the seconds in words: `about 4 min`."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"about {minutes} min"
    return f"about {minutes // 60} h {minutes % 60} min"
