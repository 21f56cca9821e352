"""Any legal history of `pulse` passes its checks, and any mutated one is caught.

A small design is played here that shares nothing with the model. It reads four topics in any order,
shows the rows that changed, is killed, and goes on from its last commit. It is asked whenever it
has shown something.
"""

import json
from collections import defaultdict
from dataclasses import dataclass

from histories import Story
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from upheld.checks import CHECKS
from upheld.history.events import Record

ROLES = ("motors", "grippers", "controllers", "robots")
ROBOTS = ("ada", "bob")


@dataclass(frozen=True)
class Plan:
    """Four inputs by a byte a record, and the steps of the design.

    A step reads a topic's next record, shows, commits or dies.
    """

    mode: str
    inputs: bytes
    steps: bytes


PLANS = st.builds(
    Plan,
    mode=st.sampled_from(["exactly_once", "at_least_once"]),
    inputs=st.binary(min_size=6, max_size=14),
    steps=st.binary(min_size=4, max_size=30),
)


class Played:
    """The history of a plan, and the rows that were shown in it."""

    def __init__(self, plan: Plan) -> None:
        self.story = Story("pulse", plan.mode)
        self.plan = plan
        self.topics: dict[str, list[Record]] = {role: [] for role in ROLES}
        for number, byte in enumerate(plan.inputs):
            role = ROLES[byte % 4]
            robot = ROBOTS[byte // 4 % 3 // 2]
            if role == "robots":
                self.topics[role].append(self.story.called(robot, f"name {number}"))
            else:
                is_visible = byte < 220
                record = self.story.signal(
                    robot, byte // 16 % 4, 1 + byte % 7, role, visible=is_visible
                )
                self.topics[role] += [record] if is_visible else []
        self.read = dict.fromkeys(ROLES, 0)
        self.committed = dict.fromkeys(ROLES, 0)
        self.touched = set[str]()
        self.pending = set[str]()
        self.shown: defaultdict[str, list[Record]] = defaultdict(list)
        self.story.start()
        for byte in plan.steps:
            self.step(byte)
        for role, records in self.topics.items():
            while self.read[role] < len(records):
                self.take(role)
        self.show()

    def step(self, byte: int) -> None:
        """Do one thing."""
        if byte < 150:
            self.take(ROLES[byte % 4])
        elif byte < 210:
            self.show()
        elif byte < 235:
            self.commit()
        else:
            self.story.kill()
            self.story.start()
            self.read = dict(self.committed)
            self.touched = set()

    def take(self, role: str) -> None:
        """Read the next record of a topic."""
        if self.read[role] < len(self.topics[role]):
            record = self.topics[role][self.read[role]]
            self.read[role] += 1
            self.touched.add((record.key or b"").decode())

    def show(self) -> None:
        """Show the rows that changed, with the read records of their robots.

        Under exactly_once that is a commit.
        """
        for robot in sorted(self.touched):
            known = [
                r
                for role in ROLES
                for r in self.topics[role][: self.read[role]]
                if r.key == robot.encode()
            ]
            if any("robots" not in r.topic for r in known):
                self.shown[robot].append(row := self.story.pulse(robot, *known))
                self.story.answers(row)
        self.touched = set()
        if self.plan.mode == "exactly_once":
            self.committed = dict(self.read)

    def commit(self) -> None:
        """Commit all records that were read."""
        self.show()
        self.committed = dict(self.read)


@settings(max_examples=100, deadline=None)
@given(PLANS)
def test_a_legal_history_passes(plan: Plan) -> None:
    """No order of reading and no number of kills is caught."""
    played = Played(plan)

    assert played.story.found("relation") == []
    if any(played.shown.values()):
        for robot, rows in played.shown.items():
            played.story.answers(rows[-1], key=robot)
        assert played.story.found("answered") == []


@settings(max_examples=100, deadline=None)
@given(PLANS, st.sampled_from(["drop", "points", "swap", "name"]), st.integers(0, 5))
def test_a_mutated_history_is_caught(plan: Plan, mutation: str, which: int) -> None:
    """Each mutation of the last rows is caught.

    It is a missing row, one point more, two rows in the wrong order, or another name.
    """
    played = Played(plan)
    rows = [row for shown in played.shown.values() for row in shown]
    assume(rows)
    row = rows[which % len(rows)]
    mine = played.shown[(row.key or b"").decode()]
    number = next(n for n, each in enumerate(mine) if each is row)
    said = json.loads(row.value or b"")
    match mutation:
        case "drop":
            assume(number == len(mine) - 1 and row.value not in [each.value for each in mine[:-1]])
            history = played.story.edited((row, []))
        case "swap":
            assume(plan.mode == "exactly_once" and number > 0)
            history = played.story.edited((row, [mine[number - 1]]), (mine[number - 1], [row]))
        case _:
            said |= {"points": said["points"] + 1} if mutation == "points" else {"name": "nobody"}
            history = played.story.edited((row, [row._replace(value=json.dumps(said).encode())]))

    found = CHECKS["relation"](history, played.story.name)

    # Without its last row a robot may still end with all of its signals: a name alone was missing,
    # which may wait.
    last = played.shown[(row.key or b"").decode()][-2:-1]
    may_wait = mutation == "drop" and last and _signals(last[0]) == _signals(row)
    assert bool(found) != bool(may_wait)


@settings(max_examples=50, deadline=None)
@given(PLANS, st.integers(0, 5))
def test_a_row_comes_again(plan: Plan, which: int) -> None:
    """A row that is written again right after itself is right in either mode."""
    played = Played(plan)
    rows = [row for shown in played.shown.values() for row in shown]
    assume(rows)
    row = rows[which % len(rows)]

    history = played.story.edited((row, [row, row]))

    assert CHECKS["relation"](history, played.story.name) == []


def _signals(row: Record) -> dict[str, object]:
    applied: dict[str, object] = json.loads(row.value or b"")["applied"]
    return {role: place for role, place in applied.items() if role != "robots"}
