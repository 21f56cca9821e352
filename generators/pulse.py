"""Signals for `pulse`, and the names of its robots.

Motors, grippers and controllers of a robot report through how many points they moved. A few robots
have most of the traffic. Some signals are as old as the first one of their robot, or older; some
are of the same moment. Names change and go.

Aborted attempts stand between the records that count, and end every partition. One seed makes the
same bytes in any process.
"""

import json
import random
from collections import Counter
from collections.abc import Sequence
from typing import Final

from faker import Faker

from upheld.generators.ledger import EPOCH_MS, WAVE_MS, Send, drawn, zipf
from upheld.generators.placement import placed

SIGNALS: Final = ("motors", "grippers", "controllers")
POINTS_MAX: Final = 5_000
_LATE: Final = 0.05  # signals that are as old as the workload's first one, or older
_LATE_MS: Final = 20
# Transactions that come to nothing, one at the end of every partition of every topic among them.
_ABORTED: Final = 4
_UNNAMED: Final = 0.1  # names that go again


class Robots:
    """The robots of one seed, numbered.

    A robot has the same partition in every topic.
    """

    def __init__(self, seed: int, robots: int, partitions: int, wave: int) -> None:
        self.rng = random.Random(f"{seed}/{wave}")
        self.fake = Faker("en_GB")
        self.fake.seed_instance(f"{seed}/{wave}")
        self.count = robots
        self.partitions = partitions
        self.first_ms = EPOCH_MS + wave * WAVE_MS
        self.clock_ms = self.first_ms + _LATE_MS

    def send(
        self, role: str, robot: int, value: dict[str, object] | None, transaction: int | None
    ) -> Send:
        """Return a record of a robot."""
        key = placed(f"robot-{robot:05}", robot, self.partitions)
        said = (
            None
            if value is None
            else json.dumps({"robot": key} | value if "points" in value else value).encode()
        )
        return Send(
            key=key.encode(),
            value=said,
            headers=(),
            timestamp_ms=self.clock_ms,
            partition=robot % self.partitions,
            transaction=transaction,
            role=role,
        )

    def signal(self, robot: int, transaction: int | None = None) -> Send:
        """Return the next signal of one of the robot's parts."""
        self.clock_ms += self.rng.randint(0, 3)
        is_late = self.rng.random() < _LATE
        ts_ms = self.first_ms + self.rng.randint(0, _LATE_MS) if is_late else self.clock_ms
        value: dict[str, object] = {"ts_ms": ts_ms, "points": self.rng.randint(1, POINTS_MAX)}
        return self.send(self.rng.choice(SIGNALS), robot, value, transaction)

    def name(self, robot: int, transaction: int | None = None, *, gone: bool = False) -> Send:
        """Return the record that names a robot from here on, or takes its name away."""
        self.clock_ms += 1
        return self.send(
            "robots", robot, None if gone else {"name": self.fake.first_name()}, transaction
        )


def signals(
    seed: int, *, count: int = 4_000, robots: int = 64, partitions: int = 4, wave: int = 0
) -> list[Send]:
    """Make the signals of one workload; aborted ones come on top.

    A later `wave` has the next signals of the same robots.
    """
    if not 1 <= robots <= count:
        raise ValueError(f"{count} signals are not enough for {robots} robots")
    made = Robots(seed, robots, partitions, wave)
    sends = list[Send]()
    weights = zipf(robots, exponent=1)
    stations = {made.rng.randrange(count) for _ in range(_ABORTED - 1)}
    for number in range(count):
        if number in stations:
            transaction = sum(station < number for station in stations)
            sends += [made.signal(made.rng.randrange(robots), transaction) for _ in range(3)]
        sends.append(made.signal(number if number < robots else drawn(made.rng, weights)))
    ends = [(role, robot) for robot in range(min(partitions, robots)) for role in SIGNALS]
    value: dict[str, object] = {"ts_ms": made.clock_ms, "points": 1}
    return sends + [made.send(role, robot, value, _ABORTED) for role, robot in ends]


def names(
    seed: int, *, count: int = 64, robots: int = 64, partitions: int = 4, wave: int = 0
) -> list[Send]:
    """Make `count` names, of every robot in its turn.

    Some names go again, and the last ones are aborted.
    """
    made = Robots(seed, robots, partitions, wave)
    sends = [
        made.name(number % robots, gone=number >= robots and made.rng.random() < _UNNAMED)
        for number in range(count)
    ]
    return sends + [made.name(robot, 0) for robot in range(min(partitions, robots))]


def facts(sends: Sequence[Send]) -> dict[str, int]:
    """Count the facts of a workload that a report states."""
    counted = [send for send in sends if not send.aborted]
    by_role = Counter(send.role for send in counted)
    return {
        "records": len(sends),
        "entries": sum(by_role[role] for role in SIGNALS),
        "accounts": len({send.key for send in counted}),
        "names": by_role["robots"],
        "aborted": len(sends) - len(counted),
    }
